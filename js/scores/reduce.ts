// What the runs of a head say together: the reductions behind every view. Twin of
// headwidget/scores/reduce.py.
//
// Scores are float32 on both sides and thresholds are rounded to float32 before they are
// compared, so that Python and the browser agree on every head, also at the edge. Of more than
// 33 runs only some order statistics are here.

import { type ScoreMap, STEPS, type TaskScores, valueAt } from "./head_scores";
import { sizes } from "./masks";
import { byCount, known } from "./missing";

export const MOST_RANKS = 33;

/** How many of `runs` make up the fraction `agreement`: 0 means any (one run), 1 means always. */
export function runsNeeded(agreement: number, runs: number): number {
  if (!(agreement >= 0 && agreement <= 1)) {
    throw new Error(
      `agreement is a fraction of the runs, from 0 (any) to 1 (always); got ${agreement}.`,
    );
  }
  return Math.max(1, Math.ceil(agreement * runs - 1e-9)); // 0.1 * 30 is 3.0000000000000004
}

/** Which order statistics of `runs` sorted runs are kept: all of few, else `most` evenly spread. */
export function keptStatistics(runs: number, most = MOST_RANKS): number[] {
  return spreadRanks(runs, Math.min(runs, most));
}

/**
 * The ranks of `runs` sorted runs at so many places, evenly spread from first to last. A head that
 * was measured in fewer runs than others has as many places; some of its runs stand at several.
 */
export function spreadRanks(runs: number, places: number): number[] {
  if (places === 1) return [0];
  return Array.from({ length: places }, (_, i) =>
    Math.floor((i * (runs - 1)) / (places - 1) + 0.5),
  );
}

/** Index into `kept` of the order statistic for `agreement`, or of the next lower one there is. */
export function keptRank(kept: readonly number[], runs: number, agreement: number): number {
  const rank = runs - runsNeeded(agreement, runs);
  let index = 0;
  while (index + 1 < kept.length && kept[index + 1]! <= rank) index++;
  return index;
}

/**
 * The value reached by at least the fraction `agreement` of the runs; never overstated.
 *
 * With `direction` -1 a run reaches a value by being as far below zero: "always" is then the
 * largest run.
 */
export function orderStatistic(
  task: TaskScores,
  agreement: number,
  direction: 1 | -1 = 1,
): ScoreMap {
  const { ranks: kept, runs, measured } = task;
  const at = direction === 1 ? task.order : task.above;
  const place = (kept: readonly number[], runs: number): number => {
    if (direction === 1) return keptRank(kept, runs, agreement);
    const least = runsNeeded(agreement, runs) - 1;
    return kept.findIndex((rank) => rank >= least);
  };
  if (!measured) return at(place(kept, runs));
  const places = byCount(measured, (count) =>
    count ? place(spreadRanks(count, kept.length), count) : 0,
  );
  const out = new Float32Array(measured.length);
  for (let cell = 0; cell < out.length; cell++) out[cell] = at(places(cell))[cell]!;
  return out;
}

/** A number of runs for each head, in half as many bytes where that is enough. */
export type Counts = Uint16Array | Uint32Array;
export const noCounts = ({ runs, mean }: TaskScores): Counts =>
  runs <= 0xffff ? new Uint16Array(mean.length) : new Uint32Array(mean.length);

/**
 * How many runs of each head are at least `edge` (or, with `direction` -1, at most -`edge`);
 * never overstated. Where `out` already has more, from the other direction, that stays.
 */
export function reaching(
  task: TaskScores,
  edge: number,
  direction: 1 | -1,
  out = noCounts(task),
): Counts {
  const { ranks, runs: allRuns, least, most, measured } = task;
  let [kept, runs] = [ranks, allRuns];
  const spread = new Map([[allRuns, ranks]]); // by the number of runs measured
  const bound = edge * direction;
  const order = task.all(direction);
  const steps = order ? [] : task.steps;
  for (let cell = 0; cell < out.length; cell++) {
    const first = least[cell]!;
    const last = most[cell]!;
    if (measured && measured[cell] !== runs) {
      runs = measured[cell]!;
      if (!spread.has(runs)) spread.set(runs, spreadRanks(runs, ranks.length));
      kept = spread.get(runs)!;
    }
    if (runs === 0) continue;
    // Most heads reach the bound in every run or in none: two maps tell, without a search.
    if (direction === 1 ? last < bound : first > bound) continue;
    if (direction === 1 ? first >= bound : last <= bound) {
      out[cell] = runs;
      continue;
    }
    // The first kept rank beyond the bound: not the minimum, at most the maximum.
    let low = 1;
    let high = kept.length - 1;
    if (!order) {
      const before = lastBefore(bound, first, last, direction);
      while (low < high) {
        const middle = (low + high) >> 1;
        if (steps[middle]![cell]! <= before) low = middle + 1;
        else high = middle;
      }
    } else {
      while (low < high) {
        const middle = (low + high) >> 1;
        const value = order[middle]![cell]!;
        if (direction === 1 ? value < bound : value <= bound) low = middle + 1;
        else high = middle;
      }
    }
    const count = direction === 1 ? runs - kept[low]! : kept[low - 1]! + 1;
    if (count > out[cell]!) out[cell] = count;
  }
  return out;
}

/**
 * The most steps with which an order statistic still lies before the bound, -1 where none does:
 * rounded down, or up with direction -1, so that no count is overstated. Values rise with steps,
 * so a search finds it where the first guess is wrong.
 */
function lastBefore(bound: number, least: number, most: number, direction: 1 | -1): number {
  const more = direction === 1 ? 0 : 1;
  const before = (steps: number): boolean => {
    const value = Math.fround(valueAt(steps + more, least, most));
    return direction === 1 ? value < bound : value <= bound;
  };
  const guess = Math.ceil(((bound - least) / (most - least)) * STEPS) - 1 - more;
  if (guess >= 0 && guess < STEPS && before(guess) && !before(guess + 1)) return guess;
  let low = 0; // the first that does not lie before it
  let high = STEPS;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (before(middle)) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

export type How = "mean" | "median" | "always" | "any" | number;

/** One map from many runs: mean, median, always (min), any (max), or an agreement from 0 to 1. */
export function reduce(task: TaskScores, how: How): ScoreMap {
  if (how === "mean") return task.mean;
  if (how === "median") return task.median;
  return orderStatistic(task, how === "always" ? 1 : how === "any" ? 0 : how);
}

/** The sum of |score| over a map. */
export const whole = (scores: ScoreMap): number =>
  known(scores).reduce((sum, value) => sum + Math.abs(value), 0);

/** A map as shares of its whole: |score| over the sum of |score| (all zero when the map is). */
export function share(scores: ScoreMap): ScoreMap {
  const total = whole(scores);
  return scores.map((value) => Math.abs(value) / (total > 0 ? total : 1)); // NaN stays
}

/**
 * The published cut-off: in the sorted |score|, the value farthest below the chord from first to
 * last. With `onlyPositive` negative scores count as none.
 */
export function elbow(scores: ScoreMap, onlyPositive = false): number {
  const size = onlyPositive ? known(scores).slice() : sizes(known(scores));
  size.sort(); // smallest first: the i-th of the sorted scores stands at end - i
  const end = size.length - 1;
  if (onlyPositive) for (let i = 0; i < size.length && size[i]! < 0; i++) size[i] = 0;
  const [first, last] = [size[end] ?? 0, size[0] ?? 0];
  if (end < 2 || first === last) return first;
  let best = 0;
  let farthest = -Infinity;
  for (let i = 0; i <= end; i++) {
    const value = size[end - i]!;
    const distance = 1 - i / end - (value - last) / (first - last); // up to a constant
    if (distance > farthest) {
      best = value;
      farthest = distance;
    }
  }
  return best;
}
