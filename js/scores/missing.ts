// Scores that were not measured: NaN, never zero. Twin of headwidget/scores/missing.py, which says
// what is said of heads that were measured in some runs only.

import type { ScoreMap, Scores, TaskScores } from "./head_scores";

/** The numbers of a map without what is missing: the map itself where nothing is. */
export function known(scores: ScoreMap): ScoreMap {
  let missing = false;
  for (let i = 0; i < scores.length && !missing; i++) missing = Number.isNaN(scores[i]!);
  return missing ? scores.filter((score) => !Number.isNaN(score)) : scores;
}

/** In how many runs of a task a head was measured. */
export const measuredAt = ({ measured, runs }: TaskScores, cell: number): number =>
  measured ? measured[cell]! : runs;

/** 1 where a head was measured in no run; null where all were in some. */
export function neverMeasured({ measured }: TaskScores): Uint8Array | null {
  if (!measured?.includes(0)) return null;
  const mask = new Uint8Array(measured.length);
  for (let i = 0; i < mask.length; i++) mask[i] = measured[i] === 0 ? 1 : 0;
  return mask;
}

/** Has no head of any task been measured? */
export const nothingMeasured = ({ tasks }: Pick<Scores, "tasks">): boolean =>
  tasks.every(({ measured }) => measured?.every((runs) => runs === 0));

/** What `of` gives for the number of runs in which each head was measured; asked once a number. */
export function byCount(
  measured: ScoreMap,
  of: (runs: number) => number,
): (cell: number) => number {
  const kept = new Map<number, number>();
  return (cell) => {
    const runs = measured[cell]!;
    let value = kept.get(runs);
    if (value === undefined) {
      value = of(runs);
      kept.set(runs, value);
    }
    return value;
  };
}
