// Colours, ranges, ticks, numbers and sizes.

import { describe, expect, it } from "vitest";
import { arrange } from "../layout";
import { barTicks, colourRange, formatter, niceStep, ramp, sliderRange, stepped, stops, ticks } from "../scales";
import type { Scores } from "../wire";

function scoresOf(values: number[], signed = false): Scores {
  const mean = Float32Array.from(values);
  const one = { name: "a", category: null, runs: 1, ranks: [0], mean, low: mean, high: mean, order: [mean] };
  const about = { version: 1, method: "m", model: "", partial: false, layers: [0], heads: values.length };
  return { ...about, signed, tasks: [one] };
}
const many = (top: number, extra: number[] = []): number[] => [
  ...Array.from({ length: 1000 }, (_, i) => (i / 999) * top),
  ...extra,
];
const labels = (values: number[], signed = false): string[] =>
  barTicks(colourRange(scoresOf(values, signed))).map((tick) => tick.label);

describe("the colour bar", () => {
  it("ends in a plus only when scores go beyond it", () => {
    expect(labels(many(0.002))).toEqual(["0.0000", "0.0005", "0.0010", "0.0015", "0.0020"]);
    expect(labels(many(0.002, [0.5]))).toEqual(["0.0000", "0.0005", "0.0010", "0.0015", "0.0020+"]);
  });
  it("spans the same on both sides of zero for signed scores, with a plus at the end that needs it", () => {
    expect(labels(many(0.2, [-5]), true)).toEqual(["−0.2+", "−0.1", "0.0", "0.1", "0.2"]);
    const range = colourRange(scoresOf([-0.3, 0.1], true));
    expect(range.low).toBe(-range.high);
  });
  it("has a range when all scores are zero, and for one score", () => {
    expect(colourRange(scoresOf([0, 0])).high).toBeGreaterThan(0);
    expect(colourRange(scoresOf([7]))).toMatchObject({ low: 0, high: 8, highCapped: false });
  });
  it("writes very small numbers with a power of ten", () => {
    expect(labels(many(2e-7)).at(-1)).toBe("2.0e−7");
  });
});

describe("colours", () => {
  it("go from viridis' first to its last", () => {
    const colours = ramp(stops(false, "light"));
    expect([colours[0], colours[255]]).toEqual([
      [68, 1, 84],
      [253, 231, 37],
    ]);
  });
  it("have zero in the middle of the diverging map, light on light and dark on dark pages", () => {
    const middle = (scheme: "light" | "dark"): number => ramp(stops(true, scheme))[128]![0];
    expect(middle("light")).toBeGreaterThan(230);
    expect(middle("dark")).toBeLessThan(60);
  });
});

describe("ticks", () => {
  it.each([
    [9, 18, [0, 2, 4, 6, 8]],
    [12, 14, [0, 2, 4, 6, 8, 10]],
    [32, 6, [0, 6, 12, 18, 24, 30]],
    [48, 6, [0, 6, 12, 18, 24, 30, 36, 42]],
    [80, 3, [0, 12, 24, 36, 48, 60, 72]],
    [1, 22, [0]],
  ])("of %i cells of %i pixels", (count, pixels, expected) => {
    expect(ticks(count, pixels, 14)).toEqual(expected);
  });
});

describe("numbers", () => {
  it("have three digits of the range, and a true minus", () => {
    const format = formatter(colourRange(scoresOf(many(0.2), true)));
    expect([format(-0.0351), format(0.2), format(-0.00001)]).toEqual(["−0.035", "0.200", "0.000"]);
  });
  it("round to nice steps", () => {
    expect([0.00042, 0.011, 0.25, 0.3, 7].map(niceStep)).toEqual([0.0005, 0.02, 0.25, 0.5, 10]);
  });
  it("step along the slider without rounding errors", () => {
    expect(sliderRange(scoresOf([0, 0.9]))).toEqual({ low: 0, high: 0.9, step: 0.0025 });
    expect(sliderRange(scoresOf([-3, 1], true))).toEqual({ low: 0, high: 3.01, step: 0.01 });
    expect(stepped(0.30000000000000004, 0.0025)).toBe("0.3000");
  });
});

describe("the layout", () => {
  it.each([
    [30, 9],
    [12, 12],
    [32, 32],
    [48, 32],
    [80, 64],
    [126, 128],
  ])("fits 8 maps of %i x %i into any width with cells that can be seen", (layers, heads) => {
    for (const width of [320, 640, 900, 1400]) {
      for (const ratio of [1, 1.5, 2]) {
        const { columns, cellWidth, cellHeight } = arrange(width, ratio, layers, heads, 8);
        expect(Number.isInteger(cellWidth) && Number.isInteger(cellHeight)).toBe(true);
        expect(columns * ((cellWidth * heads) / ratio + 44)).toBeLessThanOrEqual(width);
        expect(Math.min(cellWidth, cellHeight) / ratio).toBeGreaterThanOrEqual(1);
      }
    }
  });
  it("balances the rows: 8 maps where 5 fit stand 4 and 4", () => {
    expect(arrange(1150, 1, 32, 32, 8).columns).toBe(4);
    expect(arrange(900, 1, 48, 32, 8).columns).toBe(4);
  });
});
