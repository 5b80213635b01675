// The TypeScript twins agree with the golden fixtures that tests/test_reduce_golden.py reads too.

import { describe, expect, it } from "vitest";
import reduceCases from "../../tests/golden/reduce.json";
import scales from "../../tests/golden/scales.json";
import wireCase from "../../tests/golden/wire.json";
import * as reduce from "../reduce";
import { colourRange, stops } from "../scales";
import { decode, type Header, type Scores, type TaskScores } from "../wire";

const bytes = (text: string): Uint8Array => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
const list = (map: ArrayLike<number>): number[] => Array.from(map);

/** A task as the wire would bring it: the mean, and the order statistics that are kept. */
function task(values: number[][][], mean: number[]): TaskScores {
  const runs = values.map((run) => run.flat());
  const cells = mean.map((_, i) => runs.map((run) => run[i]!).sort((a, b) => a - b));
  const ranks = reduce.ranks(runs.length);
  const order = ranks.map((rank) => Float32Array.from(cells, (cell) => cell[rank]!));
  const map = Float32Array.from(mean);
  return { name: "", category: null, runs: runs.length, ranks, mean: map, low: map, high: map, order };
}

describe.each(reduceCases)("$name", ({ values, expected }) => {
  const one = task(values, expected.mean);
  const heads = values[0]![0]!.length;

  it("reduces as Python does", () => {
    expect(one.ranks).toEqual(expected.ranks);
    expect(list(reduce.reduce(one, "mean"))).toEqual(expected.mean);
    expect(list(reduce.reduce(one, "always"))).toEqual(expected.always);
    expect(list(reduce.reduce(one, "any"))).toEqual(expected.any);
    expect(reduce.elbow(one.mean)).toBe(expected.elbow);
    expect(reduce.top(one.mean, heads, 4)).toEqual(expected.top);
    list(reduce.share(one.mean)).forEach((value, i) => {
      expect(value).toBeCloseTo(expected.share[i]!, 6);
    });
  });

  it("has the median, exact while all runs are here or odd in number, else the upper middle one", () => {
    const exact = one.ranks.length === one.runs || one.runs % 2 === 1;
    expect(list(reduce.reduce(one, "median"))).toEqual(exact ? expected.median : expected.agreement["0.5"].exact);
  });

  it.each(Object.entries(expected.agreement))("agrees at %s", (text, at) => {
    const agreement = Number(text);
    expect(reduce.runsNeeded(agreement, one.runs)).toBe(at.runs_needed);
    expect(reduce.keptRank(one.ranks, one.runs, agreement)).toBe(at.kept_index);
    const kept = list(reduce.orderStatistic(one, agreement));
    expect(kept).toEqual(at.kept);
    kept.forEach((value, i) => {
      expect(value).toBeLessThanOrEqual(at.exact[i]!); // never overstated
    });
  });

  it.each(Object.entries(expected.threshold))("counts the same heads at %s", (text, at) => {
    const threshold = Number(text);
    expect(list(reduce.reaches(one.mean, threshold))).toEqual(at.mean);
    expect(list(reduce.reaches(reduce.sizes(one.mean), threshold))).toEqual(at.size);
    expect(list(reduce.on(one, threshold, 1))).toEqual(at.always);
    expect(list(reduce.on(one, threshold, 0))).toEqual(at.any);
    if (one.ranks.length === one.runs) expect(list(reduce.on(one, threshold, 0.5))).toEqual(at.half);
  });
});

describe("the wire", () => {
  const buffer = bytes(wireCase.buffer);
  const header: Header = wireCase.header;

  it("brings every task's maps", () => {
    const scores = decode(header, buffer);
    expect(scores.tasks.map((t) => t.name)).toEqual(["<b>syntax</b>", "math 🧮", "long"]);
    scores.tasks.forEach((one, i) => {
      expect(list(one.mean)).toEqual(wireCase.tasks[i]!.mean);
      expect(one.order.map(list)).toEqual(wireCase.tasks[i]!.order);
      expect(one.low.every((low, cell) => low <= one.mean[cell]! && one.mean[cell]! <= one.high[cell]!)).toBe(true);
    });
  });

  it.each([0, 1, 8])("reads a view that starts %i bytes into a longer message", (offset) => {
    const message = new Uint8Array(buffer.length + offset + 7).fill(255);
    message.set(buffer, offset);
    const scores = decode(header, new DataView(message.buffer, offset, buffer.length));
    expect(list(scores.tasks[2]!.mean)).toEqual(wireCase.tasks[2]!.mean);
  });

  it("refuses what does not fit, with a sentence", () => {
    expect(() => decode({ ...header, version: 2 }, buffer)).toThrow("wire version 2; this headwidget reads version 1");
    expect(() => decode(header, buffer.subarray(4))).toThrow(/holds \d+ numbers; its header promises \d+\./);
    expect(() => decode({ ...header, heads: 5 }, buffer)).toThrow("its header promises");
  });
});

describe("colours", () => {
  it.each(scales.ranges)("span what Python's figure spans, case %#", ({ values, signed, low, high, step }) => {
    const one = { tasks: [{ mean: Float32Array.from(values) }], signed } as unknown as Scores;
    expect(colourRange(one)).toMatchObject({ low, high, step });
  });

  it("are those of Python's figure", () => {
    const text = stops(true, "light").map((rgb) => rgb.map((part) => part.toString(16).padStart(2, "0")).join(""));
    expect(text.join(" ")).toBe(scales.diverging);
  });
});
