// How many heads are on at k of n runs: the agreement's curve.

import { describe, expect, it } from "vitest";
import { DEFAULTS } from "../../display/settings";
import { VIEWS } from "../../display/views";
import { agreementStops, headsOn, stopFor } from "../../scores/agreement_curve";
import { Memo } from "../../scores/memo";
import { keptStatistics } from "../../scores/reduce";
import { scoresOf, task } from "../fixtures";

const counts = (...runs: number[]) => Uint16Array.from(runs);
const ofRuns = (runs: number) => ({ runs, measured: null });
const all = (runs: number) => Array.from({ length: runs }, (_, i) => (i + 1) / runs);

describe("the curve of heads on", () => {
  it("has at each number of runs the heads that reach the threshold in as many", () => {
    expect(headsOn([ofRuns(4)], [counts(0, 1, 2, 2, 4)], all(4))).toEqual([4, 3, 1, 1]);
  });
  it("counts a head that is on in one of the tasks once", () => {
    const two = [counts(4, 0, 1), counts(4, 2, 0)];
    expect(headsOn([ofRuns(4), ofRuns(4)], two, all(4))).toEqual([3, 2, 1, 1]);
  });
  it("goes by fractions where tasks have different numbers of runs", () => {
    const on = headsOn([ofRuns(4), ofRuns(2)], [counts(1, 0), counts(0, 1)], all(4));
    expect(on).toEqual([2, 1, 0, 0]); // one of two runs is half of them
  });
  it("asks of a head measured in fewer runs for that fraction of them", () => {
    const some = { runs: 4, measured: Float32Array.of(4, 2, 0) };
    expect(headsOn([some], [counts(4, 1, 0)], all(4))).toEqual([2, 2, 1, 1]);
  });
  it("is empty of heads without a task", () => {
    expect(headsOn([], [], all(3))).toEqual([0, 0, 0]);
  });
  it("is the number that the agreement view shows, at every stop", () => {
    const runs = Array.from({ length: 7 }, (_, run) =>
      Array.from({ length: 12 }, (_, head) => Math.sin(1 + run * 5 + head * 3) + head / 20),
    );
    const memo = new Memo(scoresOf([task("a", runs), task("b", runs.slice(0, 5))], [0, 1], true));
    const stops = agreementStops(memo.scores.tasks);
    const settings = { ...DEFAULTS, view: "agreement", tasks: ["a", "b"], threshold: 0.6 } as const;
    const view = VIEWS.agreement;
    const tasks = view.tasks(memo, settings);
    const reached = tasks.map((task) => view.reached(memo, task, settings)!);
    const seen = stops.map((agreement) =>
      view.picture(memo, { ...settings, agreement }).passing!.reduce((sum, on) => sum + on, 0),
    );
    expect(headsOn(tasks, reached, stops)).toEqual(seen);
    expect(new Set(seen).size).toBeGreaterThan(3);
  });
});

describe("the agreement's stops", () => {
  it("go from one run to all of the task with most", () => {
    const tasks = [3, 5].map((n) => task("t", Array(n).fill([0.1, 0.2])));
    expect(agreementStops(tasks)).toEqual([0.2, 0.4, 0.6, 0.8, 1]);
    expect(agreementStops([])).toEqual([1]);
  });
  it("are those whose order statistic was sent", () => {
    expect(keptStatistics(64)).toHaveLength(33);
    const stops = agreementStops([task("t", Array(64).fill([0.1]))]);
    expect(stops).toHaveLength(33);
    expect([stops[0], stops[32]]).toEqual([1 / 64, 1]);
  });
  it("stand for the agreements up to them", () => {
    const stops = all(10);
    expect([0, 0.1, 0.11, 0.1 + 0.2, 1].map((agreement) => stopFor(stops, agreement))).toEqual([
      0, 0, 1, 2, 9,
    ]);
  });
});
