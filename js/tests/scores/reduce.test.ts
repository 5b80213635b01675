// Reductions agree with the golden fixtures that tests/scores/test_golden.py reads too.

import { describe, expect, it } from "vitest";
import reduceCases from "../../../tests/golden/reduce.json";
import { DEFAULTS, type Settings } from "../../display/settings";
import { viewOf } from "../../display/views";
import { Memo } from "../../scores/memo";
import * as reduce from "../../scores/reduce";
import { list, scoresOf, task } from "../fixtures";

describe.each(reduceCases)("$name", ({ values, layers, expected }) => {
  const flat = values.map((run) => run.flat());
  const one = task("one", flat);

  it("reduces as Python does", () => {
    expect(one.ranks).toEqual(expected.ranks);
    expect(list(reduce.reduce(one, "mean"))).toEqual(expected.mean);
    expect(list(reduce.reduce(one, "median"))).toEqual(expected.median);
    expect(list(reduce.reduce(one, "always"))).toEqual(expected.always);
    expect(list(reduce.reduce(one, "any"))).toEqual(expected.any);
    expect(reduce.elbow(one.mean)).toBe(expected.elbow);
    list(reduce.share(one.mean)).forEach((value, i) => {
      expect(value).toBeCloseTo(expected.share[i]!, 6);
    });
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
    const settings: Settings = { ...DEFAULTS, tasks: ["one"], threshold: Number(text) };
    const passing = (signed: boolean, more: Partial<Settings> = {}): number[] => {
      const memo = new Memo(scoresOf([one], layers, signed));
      const asked = { ...settings, ...more };
      return list(viewOf(asked).picture(memo, asked).passing!);
    };
    expect(passing(false)).toEqual(at.mean);
    expect(passing(true)).toEqual(at.size); // signed scores by their size
    expect(passing(false, { view: "agreement", agreement: 1 })).toEqual(at.always);
    expect(passing(false, { view: "agreement", agreement: 0 })).toEqual(at.any);
    if (one.ranks.length < one.runs) return; // understated: many.test.ts
    expect(passing(false, { view: "agreement", agreement: 0.5 })).toEqual(at.half);
  });
});
