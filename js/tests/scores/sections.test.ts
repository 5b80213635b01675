// The sections of an encoder-decoder model's rows: what layers are called, and where lines stand.

import { describe, expect, it } from "vitest";
import { headName, layerLabel, sectionNames, sectionStarts } from "../../scores/head_scores";

const sections = [
  ["encoder", 2],
  ["decoder", 1],
  ["cross", 1],
] as const;
const rows = { layers: [0, 1, 2, 3], sections };

describe("sections", () => {
  it("name layers by their letter and number", () => {
    expect(rows.layers.map((row) => layerLabel(rows, row))).toEqual(["E0", "E1", "D0", "C0"]);
    expect(headName(rows, [2, 5])).toBe("D0 H5");
  });
  it("begin behind the first", () => {
    expect(sectionStarts(rows)).toEqual([2, 3]);
  });
  it("have names in their middles", () => {
    expect(sectionNames(rows)).toEqual([
      { name: "Encoder", rows: 0.5, middle: 0.25 },
      { name: "Decoder", rows: 0.25, middle: 0.625 },
      { name: "Cross", rows: 0.25, middle: 0.875 },
    ]);
  });
  it("are none in other models", () => {
    expect(sectionNames({ layers: [3, 7] })).toEqual([]);
    const plain = { layers: [3, 7] };
    expect(layerLabel(plain, 1)).toBe("7");
    expect(headName(plain, [7, 0])).toBe("L7 H0");
    expect(sectionStarts(plain)).toEqual([]);
  });
});
