// The threshold's distribution: bars, what of them passes, and the way from a place to a threshold.

import { describe, expect, it } from "vitest";
import {
  axisOf,
  BINS,
  binned,
  cutsOf,
  HIGH,
  middleCut,
  nearest,
  outline,
  passingBins,
  placeOn,
  sidesOf,
  stopsOf,
  thresholdAt,
  total,
} from "../../display/distribution";
import { DEFAULTS, type Settings } from "../../display/settings";
import { VIEWS, viewOf } from "../../display/views";
import { Memo } from "../../scores/memo";
import type { Rule, Sign } from "../../scores/threshold";
import { scoresOf, task } from "../fixtures";

const axis = { low: -1, high: 1 };
const one = (...values: number[]) => ({ maps: [Float32Array.from(values)], whole: 1 });
const filledBins = (bins: Uint32Array) =>
  Array.from(bins.entries()).filter(([, count]) => count > 0);

const math = [0.9, -0.5, 0.3, 0.2, -0.1, 0.05];
const syntax = [0.4, 0.35, -0.3, 0.1, 0, -0.02];
const memoOf = (signed: boolean): Memo => {
  const size = signed ? (value: number) => value : Math.abs;
  return new Memo(
    scoresOf([task("math", [math.map(size)]), task("syntax", [syntax.map(size)])], [0, 1], signed),
  );
};
const asked = (settings: Partial<Settings>): Settings => ({
  ...DEFAULTS,
  tasks: ["math", "syntax"],
  ...settings,
});

describe("bars", () => {
  it("count every number once, what lies beyond the axis at its ends", () => {
    const bins = binned(one(-1, -0.99, 0, 0.999, 1, 7, -7), axis);
    expect(filledBins(bins)).toEqual([
      [0, 3],
      [BINS / 2, 1],
      [BINS - 1, 3],
    ]);
  });
  it("leave out what was not measured", () => {
    expect(filledBins(binned(one(Number.NaN, 0.5, Number.NaN), axis))).toHaveLength(1);
  });
  it("count numbers as shares where they are divided by a whole", () => {
    const shares = { ...one(1, 2, -4), whole: 4 };
    expect(binned(shares, axis)).toEqual(binned(one(0.25, 0.5, -1), axis));
  });
  it("of several tasks are added", () => {
    const both = total([binned(one(0.5, -0.5), axis), binned(one(0.5), axis)]);
    expect(filledBins(both).map(([, count]) => count)).toEqual([1, 2]);
  });
  it("are drawn as an outline from bin to bin, a lone head 2 high, the most as high as it goes", () => {
    const counts = new Uint32Array(BINS);
    counts.set([1, 0, 1000, 1000], 10);
    expect(outline(counts, 1000)).toBe(
      `M10 ${HIGH}V${HIGH - 2}H11V${HIGH}ZM12 ${HIGH}V0H14V${HIGH}Z`,
    );
    expect(outline(counts, 1000, 11, 13)).toBe(`M12 ${HIGH}V0H13V${HIGH}Z`);
    expect(outline(new Uint32Array(BINS), 0)).toBe("");
  });
});

describe("what passes", () => {
  const bins = binned(one(-0.9, -0.4, 0.1, 0.4, 0.9), axis);
  const values = (passing: Uint32Array): number[] =>
    filledBins(passing).map(([bin]) => Math.round(10 * (((bin + 0.5) * 2) / BINS - 1)) / 10);
  it.each([
    ["either", [-0.9, -0.4, 0.4, 0.9]],
    ["helps", [0.4, 0.9]],
    ["hurts", [-0.9, -0.4]],
  ] as const)("of either sign lies on the side that counts: %s", (sign, expected) => {
    expect(values(passingBins([bins], [0.3], axis, sidesOf(true, sign)))).toEqual(expected);
  });
  it("is everything without a threshold, and above the cut of unsigned scores", () => {
    expect(passingBins([bins], [null], axis, sidesOf(true, "either"))).toEqual(bins);
    expect(values(passingBins([bins], [0.3], axis, sidesOf(false, "hurts")))).toEqual([0.4, 0.9]);
  });
  it("is cut for each task at its own place", () => {
    const sides = sidesOf(true, "helps");
    const both = passingBins([bins, bins], [0.3, 0.6], axis, sides);
    expect(filledBins(both).map(([, count]) => count)).toEqual([1, 2]);
  });
});

describe("the axis", () => {
  it.each(["tasks", "agreement", "categories"] as const)(
    "has every number of the %s view, and zero in the middle of signed scores",
    (view) => {
      for (const signed of [true, false]) {
        const memo = memoOf(signed);
        const { low, high } = axisOf(memo, asked({ view }));
        expect(high).toBeGreaterThanOrEqual(Math.fround(0.9));
        expect(low).toBe(signed ? -high : 0);
        expect(placeOn({ low, high }, 0)).toBe(signed ? 0.5 : 0);
        expect(placeOn({ low, high }, 99)).toBe(1);
        const shown = VIEWS[view].tasks(memo, asked({ view }));
        for (const task of shown) {
          const counts = binned(VIEWS[view].compared(memo, task, asked({ view })), { low, high });
          expect(counts.reduce((sum, count) => sum + count)).toBe(6);
        }
      }
    },
  );
  it("is the same whatever the rule, the sign, the number and the tasks shown", () => {
    const memo = memoOf(true);
    const axes = [
      {},
      { rule: "top", threshold: 3 } as const,
      { rule: "elbow", threshold: 1 } as const,
      { sign: "hurts" } as const,
      { tasks: ["syntax"] },
      { threshold: 0.2 },
    ].map((settings) => axisOf(memo, asked(settings)));
    for (const other of axes) expect(other).toEqual(axes[0]);
  });
});

describe("a place on the axis", () => {
  const signs: Sign[] = ["either", "helps", "hurts"];
  const rules: Rule[] = ["value", "top", "percent", "elbow"];
  const cases = [true, false].flatMap((signed) =>
    signs.flatMap((sign) => rules.map((rule) => ({ signed, sign, rule }))),
  );
  it.each(cases)("gives a threshold that cuts there: $rule, $sign, signed $signed", (given) => {
    const { signed, sign, rule } = given;
    const memo = memoOf(signed);
    const settings = asked({ rule, sign });
    const shown = viewOf(settings).tasks(memo, settings);
    const below = signed && sign === "hurts";
    const cutAt = (threshold: number): number =>
      middleCut(cutsOf(memo, shown, { ...settings, threshold }))!;
    const stops = stopsOf(memo, settings, rule);
    for (const stop of stops) {
      const cut = cutAt(stop);
      const there = thresholdAt(memo, settings, below ? -cut : cut);
      expect(stops).toContain(there);
      expect(cutAt(there!)).toBeCloseTo(cut, 6);
    }
  });
  it("is mirrored where either sign counts", () => {
    const [memo, settings] = [memoOf(true), asked({})];
    for (const value of [0.1, 0.5, 0.7]) {
      expect(thresholdAt(memo, settings, -value)).toBe(thresholdAt(memo, settings, value));
      expect(thresholdAt(memo, settings, value)).toBeCloseTo(value, 2);
    }
  });
  it("at the weak end ends the threshold, where a smaller number lets more pass", () => {
    for (const rule of ["value", "elbow"] as const)
      expect(thresholdAt(memoOf(true), asked({ rule }), 0)).toBeNull();
    for (const rule of ["top", "percent"] as const)
      expect(thresholdAt(memoOf(true), asked({ rule }), 0)).not.toBeNull();
    expect(thresholdAt(memoOf(true), asked({ sign: "helps" }), -0.5)).toBeNull();
    expect(thresholdAt(memoOf(true), asked({ sign: "hurts" }), 0.5)).toBeNull();
    expect(thresholdAt(memoOf(true), asked({ rule: "top", sign: "helps" }), 9)).toBe(1);
  });
  it("follows the tasks that are shown", () => {
    const memo = memoOf(false);
    const both = asked({ rule: "top" });
    const strongest = (tasks: string[]) => thresholdAt(memo, { ...both, tasks }, 0.5);
    expect(strongest(["math"])).toBe(2); // 0.9, then 0.5
    expect(strongest(["syntax"])).toBe(1); // 0.4
    expect(strongest(["math"])).toBe(2);
  });
});

it("the middle of the cuts is the lower of two, and none without a cut", () => {
  expect(middleCut([0.3, 0.1, 0.2])).toBe(0.2);
  expect(middleCut([0.3, 0.1])).toBe(0.1);
  expect(middleCut([null, null])).toBeNull();
  expect(middleCut([])).toBeNull();
});

it("the nearest of some numbers is the first of those as near", () => {
  expect(nearest([5, 3, 3, 1], 2.9)).toBe(1);
  expect(nearest([5, 3, 1], 4)).toBe(0);
});

describe("without a threshold the categories view cuts at each task's elbow", () => {
  it("and the others do not cut", () => {
    const memo = memoOf(true);
    const settings = asked({});
    const math = memo.task("math")!;
    expect(VIEWS.tasks.cut(memo, math, settings)).toBeNull();
    expect(VIEWS.agreement.cut(memo, math, settings)).toBeNull();
    const elbow = VIEWS.categories.cut(memo, math, settings);
    expect(elbow).toBe(VIEWS.tasks.cut(memo, math, asked({ rule: "elbow", threshold: 1 })));
    expect(elbow).toBeGreaterThan(0);
  });
});

describe("in the agreement view", () => {
  const runs = [
    [0.1, -0.4, 0.2, 0, 0, 0],
    [0.3, -0.2, 0.1, 0, 0, 0],
  ];
  const memo = new Memo(scoresOf([task("math", runs)], [0, 1], true));
  const view = VIEWS.agreement;
  it("bars are of every run, and shares of runs where the number is a share", () => {
    const settings = asked({ view: "agreement", tasks: ["math"] });
    const { maps, whole } = view.compared(memo, memo.task("math")!, settings);
    expect(whole).toBe(1);
    expect(maps.flatMap((map) => [...map]).sort((a, b) => b - a)[0]).toBeCloseTo(0.3);
    expect(maps).toHaveLength(2);
    const shares = view.compared(memo, memo.task("math")!, { ...settings, normalize: "share" });
    expect(shares.whole).toBeCloseTo(0.65); // of the means 0.2, -0.3, 0.15
  });
  it("the cut of a share stands at the share", () => {
    const settings = asked({ view: "agreement", normalize: "share", threshold: 0.25 });
    expect(view.cut(memo, memo.task("math")!, settings)).toBeCloseTo(0.25, 6);
  });
});
