// What the runs of a head say together: the reductions behind every view. Twin of headwidget/reduce.py.
//
// Scores are float32 on both sides and thresholds are rounded to float32 before they are compared, so that Python and
// the browser agree on every head, also at the edge. Of more than 33 runs only some order statistics are here.

import type { ScoreMap, TaskScores } from "./wire";

export const MOST_RANKS = 33;

/** How many of `runs` make up the fraction `agreement`: 0 means any (one run), 1 means always (all of them). */
export function runsNeeded(agreement: number, runs: number): number {
  if (!(agreement >= 0 && agreement <= 1)) {
    throw new Error(`agreement is a fraction of the runs, from 0 (any) to 1 (always); got ${agreement}.`);
  }
  return Math.max(1, Math.ceil(agreement * runs - 1e-9)); // 0.1 * 30 is 3.0000000000000004
}

/** Which order statistics of `runs` sorted runs are kept: all while there are few, else `most` evenly spread. */
export function ranks(runs: number, most = MOST_RANKS): number[] {
  if (runs <= most) return Array.from({ length: runs }, (_, i) => i);
  return Array.from({ length: most }, (_, i) => Math.floor((i * (runs - 1)) / (most - 1) + 0.5));
}

/** Index into `kept` of the order statistic for `agreement`; where it was not kept the next lower one stands in. */
export function keptRank(kept: readonly number[], runs: number, agreement: number): number {
  const rank = runs - runsNeeded(agreement, runs);
  let index = 0;
  while (index + 1 < kept.length && kept[index + 1]! <= rank) index++;
  return index;
}

/** The value reached by at least the fraction `agreement` of the runs; never overstated. */
export function orderStatistic(task: TaskScores, agreement: number): ScoreMap {
  return task.order[keptRank(task.ranks, task.runs, agreement)]!;
}

/** Exact while every rank is here or the runs are odd; else the upper of the two middle runs. */
export function median(task: TaskScores): ScoreMap {
  const upper = orderStatistic(task, 0.5);
  if (task.runs % 2 || task.ranks.length < task.runs) return upper;
  const lower = task.order[task.runs / 2 - 1]!;
  return upper.map((value, i) => (value + lower[i]!) / 2);
}

export type How = "mean" | "median" | "always" | "any" | number;

/** One map from many runs: the mean, the median, always (min), any (max), or an agreement from 0 to 1. */
export function reduce(task: TaskScores, how: How): ScoreMap {
  if (how === "mean") return task.mean;
  if (how === "median") return median(task);
  return orderStatistic(task, how === "always" ? 1 : how === "any" ? 0 : how);
}

/** 1 where a score reaches the threshold, compared in float32 as Python does. */
export function reaches(scores: ScoreMap, threshold: number): Uint8Array {
  const edge = Math.fround(threshold);
  const out = new Uint8Array(scores.length); // a plain loop: this runs for every map while a slider is dragged
  for (let i = 0; i < out.length; i++) out[i] = scores[i]! >= edge ? 1 : 0;
  return out;
}

/** 1 where a head reaches `threshold` in at least the fraction `agreement` of its runs. */
export function on(task: TaskScores, threshold: number, agreement = 1): Uint8Array {
  return reaches(orderStatistic(task, agreement), threshold);
}

/** A map without its signs. */
export function sizes(scores: ScoreMap): ScoreMap {
  return scores.map(Math.abs);
}

/** A map as shares of its whole: |score| over the sum of |score| (all zero when the map is). */
export function share(scores: ScoreMap): ScoreMap {
  const total = scores.reduce((sum, value) => sum + Math.abs(value), 0);
  return scores.map((value) => (total > 0 ? Math.abs(value) / total : 0));
}

/** The published cut-off: in the sorted |score|, the value farthest below the chord from first to last. */
export function elbow(scores: ScoreMap): number {
  const size = sizes(scores).sort().reverse();
  const first = size[0] ?? 0;
  const last = size[size.length - 1] ?? 0;
  if (size.length < 3 || first === last) return first;
  let best = 0;
  let farthest = -Infinity;
  size.forEach((value, i) => {
    const distance = 1 - i / (size.length - 1) - (value - last) / (first - last); // up to a constant
    if (distance > farthest) [best, farthest] = [value, distance];
  });
  return best;
}

/** The `k` largest heads of a map as [row, head], largest first; ties go to the lower layer, then head. */
export function top(scores: ScoreMap, heads: number, k: number): [number, number][] {
  const order = Array.from(scores.keys()).sort((a, b) => scores[b]! - scores[a]! || a - b);
  return order.slice(0, Math.max(0, k)).map((i) => [Math.floor(i / heads), i % heads]);
}
