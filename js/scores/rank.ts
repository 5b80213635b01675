// A head's rank in a task: the one definition that the card and the table use. Twin of
// headwidget/scores/rank.py.
//
// Heads are ranked by their mean over runs or, where the scores say so, by its absolute value.
// How scores are shown (sign, reduction, threshold) changes no rank.

import type { ScoreMap, Scores, TaskScores } from "./head_scores";
import { sizes } from "./masks";
import type { Memo } from "./memo";
import { known } from "./missing";

/** What heads are ranked by: the means, or their absolute values. */
export const rankingValues = (means: ScoreMap, rankedBy: Scores["ranked_by"]): ScoreMap =>
  rankedBy === "size" ? sizes(means) : means;

/**
 * For each value: 1 plus how many are strictly larger, so that heads that tie share a rank; 0 for
 * what was not measured.
 */
export function order(values: ScoreMap): Uint32Array {
  const sorted = known(values).slice().sort(); // the smallest first
  const places = new Uint32Array(values.length);
  for (let i = 0; i < places.length; i++) {
    const value = values[i]!;
    if (!Number.isNaN(value)) places[i] = 1 + larger(sorted, value);
  }
  return places;
}

/** The rank of every head in a task; 1 is first, 0 for no rank. */
export const ranks = (memo: Memo, task: TaskScores): Uint32Array =>
  memo.once(() => order(rankingValues(task.mean, memo.scores.ranked_by)), "ranks", task.name);

/** What the rank is called, so that a strong head that hurts is not taken for a weak one. */
export function rankName({ signed, ranked_by }: Pick<Scores, "signed" | "ranked_by">): string {
  if (!signed) return "rank";
  return ranked_by === "size" ? "rank (1: largest size)" : "rank (1: highest mean)";
}

/** How many of the sorted values are strictly larger than this one. */
function larger(sorted: ScoreMap, value: number): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle]! > value) high = middle;
    else low = middle + 1;
  }
  return sorted.length - low;
}
