// Of more than 33 runs the browser has some order statistics only: what it says of agreement is
// understated, never overstated.

import { describe, expect, it } from "vitest";
import many from "../../../tests/golden/many.json";
import { DEFAULTS, type Settings } from "../../display/settings";
import { viewOf } from "../../display/views";
import { decode, type Header } from "../../display/wire";
import { Memo } from "../../scores/memo";
import { orderStatistic, reaching } from "../../scores/reduce";
import { cut } from "../../scores/threshold";
import { bytes, floats } from "../fixtures";

const scores = decode(many.header as unknown as Header, bytes(many.buffer));
const memo = new Memo(scores);

/** The float32 right above a number. */
function after(value: number): number {
  const [float, bits] = ((buffer) => [new Float32Array(buffer), new Int32Array(buffer)])(
    new ArrayBuffer(4),
  );
  float[0] = value;
  if (float[0] === 0) return 2 ** -149;
  bits[0]! += value > 0 ? 1 : -1;
  return float[0]!;
}
const before = (value: number): number => -after(-value);

describe.each(scores.tasks)("$name", (task) => {
  const runs = (many.values as Record<string, (number | null)[][][]>)[task.name]!.map((run) => [
    ...floats(run.flat()),
  ]);
  const heads = task.mean.length;
  const sorted = Array.from({ length: heads }, (_, i) =>
    runs
      .map((run) => run[i]!)
      .filter((run) => !Number.isNaN(run))
      .sort((a, b) => a - b),
  );
  const measured = (cell: number): number => sorted[cell]!.length;
  const count = (cell: number, edge: number, direction: number): number =>
    sorted[cell]!.filter((value) => value * direction >= edge).length;

  it.each([1, -1] as const)(
    "counts no run that does not reach the threshold, direction %i",
    (direction) => {
      let [seen, there] = [0, 0];
      for (let of = 0; of < heads; of++) {
        // Thresholds at every run of the head and right beside it, where wrong rounding shows.
        for (const value of new Set(sorted[of]!)) {
          for (const edge of [value, after(value), before(value)].map((one) => one * direction)) {
            const got = reaching(task, edge, direction)[of]!;
            // Searched in steps or in maps, the count is the same.
            expect(reaching({ ...task, all: () => null }, edge, direction)[of]).toBe(got);
            const exact = count(of, edge, direction);
            expect(got, `head ${of} at ${edge}`).toBeLessThanOrEqual(exact);
            // Always and Any are exact.
            if (exact === measured(of) || got === measured(of)) expect(got).toBe(exact);
            if (measured(of) <= task.ranks.length && task.bits === 32) expect(got).toBe(exact);
            if (exact === 0 || got === 0) expect(got).toBe(exact);
            if (of < 4) continue;
            seen += got;
            there += exact;
          }
        }
      }
      expect(seen).toBeGreaterThan(0.9 * there); // nor are ordinary heads understated by much
    },
  );

  it.each([1, -1] as const)("shows no score that fewer runs reach, direction %i", (direction) => {
    for (const agreement of [0, 0.01, 0.1, 0.25, 1 / 3, 0.5, 0.66, 0.75, 0.9, 0.99, 1]) {
      const map = orderStatistic(task, agreement, direction);
      for (let cell = 0; cell < heads; cell++) {
        const needed = Math.max(1, Math.ceil(agreement * measured(cell) - 1e-9));
        if (measured(cell) === 0) {
          expect(map[cell]).toBeNaN();
          continue;
        }
        const exact = sorted[cell]!.at(direction === 1 ? -needed : needed - 1)!;
        expect(map[cell]! * direction).toBeLessThanOrEqual(exact * direction);
        if (agreement === 0 || agreement === 1) expect(map[cell]).toBe(exact);
      }
    }
  });

  it.each(["helps", "hurts", "either"] as const)("counts %s as views do, by every rule", (sign) => {
    const rules: Partial<Settings>[] = [1, 2, 3, 5].map((threshold) => ({
      rule: "top",
      threshold,
    }));
    for (const threshold of [0, 0.001, 0.1, 0.4999, 0.5, 0.9])
      rules.push({ rule: "value", threshold });
    rules.push({ rule: "elbow", threshold: 1 }, { rule: "elbow", threshold: 0.01 });
    for (const rule of rules) {
      const settings: Settings = { ...DEFAULTS, ...rule, view: "agreement", sign };
      const edge = cut(memo, task, settings)!;
      const got = viewOf(settings).reached(memo, task, settings)!;
      for (let cell = 0; cell < heads; cell++) {
        const [up, down] = [count(cell, edge, 1), count(cell, edge, -1)];
        const exact = sign === "helps" ? up : sign === "hurts" ? down : Math.max(up, down);
        expect(got[cell], `${JSON.stringify(rule)}, head ${cell}`).toBeLessThanOrEqual(exact);
      }
    }
  });
});
