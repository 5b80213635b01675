// What clicks, boxes, labels and buttons do to the selection.

import { describe, expect, it } from "vitest";
import {
  inBox,
  inMask,
  inverted,
  type Selection,
  selectedCells,
  toggled,
  withMany,
} from "../../display/selection";
import type { Head, Scores } from "../../scores/head_scores";
import { scoresOf, task } from "../fixtures";

const scores = scoresOf([task("a", [[1, 2, 3, 4, 5, 6]])], [2, 5, 9]); // 3 layers of 2 heads
const state = (selected: Head[], of: Scores | null = scores): Selection => ({
  scores: of,
  selected,
});
const [a, b, c]: Head[] = [
  [1, 2],
  [3, 4],
  [12, 3],
];

describe("a click", () => {
  it("takes the place of the selection, or ends it", () => {
    expect(toggled([], a!, false)).toEqual([a]);
    expect(toggled([a!], a!, false)).toEqual([]);
    expect(toggled([a!, b!], a!, false)).toEqual([a]);
    expect(toggled([b!], a!, false)).toEqual([a]);
  });
  it("with a key held adds a head or takes it away, and leaves the order of the others", () => {
    expect(toggled([a!], b!, true)).toEqual([a, b]);
    expect(toggled([a!, b!, c!], b!, true)).toEqual([a, c]);
  });
  it("does not mistake [1, 23] for [12, 3]", () => {
    expect(toggled([[1, 23]], c!, true)).toEqual([[1, 23], c]);
  });
  it("changes no list it was given", () => {
    const given = Object.freeze([a!, b!]);
    toggled(given, a!, true);
    withMany(given, [c!], true);
    expect(given).toEqual([a, b]);
  });
});

describe("a box or a label", () => {
  it("takes the place of the selection; the same once more takes it back", () => {
    expect(withMany([c!], [a!, b!], false)).toEqual([a, b]);
    expect(withMany([b!, a!], [a!, b!], false)).toEqual([]);
    expect(withMany([a!, b!, c!], [a!, b!], false)).toEqual([a, b]);
    expect(withMany([a!, c!], [a!, b!], false)).toEqual([a, b]);
  });
  it("with a key held adds what is new, and leaves when all were in", () => {
    expect(withMany([a!], [a!, b!], true)).toEqual([a, b]);
    expect(withMany([a!, b!, c!], [b!, a!], true)).toEqual([c]);
  });
  it("has every head between two corners, whichever way it was drawn", () => {
    const corners = [
      { row: 0, head: 0 },
      { row: 1, head: 1 },
    ] as const;
    const heads = [
      [2, 0],
      [2, 1],
      [5, 0],
      [5, 1],
    ];
    expect(inBox(scores, corners)).toEqual(heads);
    expect(inBox(scores, [corners[1], corners[0]])).toEqual(heads);
    expect(
      inBox(scores, [
        { row: 2, head: 0 },
        { row: 0, head: 0 },
      ] as const),
    ).toEqual([
      [2, 0],
      [5, 0],
      [9, 0],
    ]);
  });
});

describe("all that pass, and all others", () => {
  it("are named by the model's own layers", () => {
    expect(inMask(scores, [0, 1, 0, 0, 1, 1])).toEqual([
      [2, 1],
      [9, 0],
      [9, 1],
    ]);
  });
  it("share out the heads", () => {
    const some: Head[] = [
      [5, 1],
      [2, 0],
    ];
    const rest = inverted(state(some));
    expect(rest).toHaveLength(4);
    expect(inverted(state(rest)).map(String).sort()).toEqual(some.map(String).sort());
    expect(inverted(state([]))).toHaveLength(6);
    expect(inverted(state(some, null))).toEqual([]);
  });
  it("leaves out selected heads that these scores do not have", () => {
    const heads: Head[] = [
      [9, 1],
      [3, 0],
      [2, 2],
      [2, 0],
    ];
    expect(selectedCells(state(heads))).toEqual([
      { row: 2, head: 1 },
      { row: 0, head: 0 },
    ]);
    expect(selectedCells(state(heads, null))).toEqual([]);
  });
});
