// Which heads pass a threshold: the rules, and what each is compared with. Twin of
// headwidget/scores/threshold.py, which says what strength and cut mean. A memo stands where
// Python has the scores.

import type { ScoreMap, Scores, TaskScores } from "./head_scores";
import { either, filled, reaches, sizes } from "./masks";
import type { Memo } from "./memo";
import { known } from "./missing";
import { elbow, reduce, share, whole } from "./reduce";

/** The smallest float32 above zero: what a cut of signed scores never falls below. */
const ANY_POSITIVE = 2 ** -149;

export type Rule = "value" | "top" | "percent" | "elbow";
export type Sign = "either" | "helps" | "hurts";

/** What decides which heads pass. */
export interface Threshold {
  /** The tasks that are shown, in order. */
  readonly tasks: readonly string[];
  readonly threshold: number | null;
  readonly rule: Rule;
  /** What counts as strong when scores are signed. */
  readonly sign: Sign;
  readonly reduction: "mean" | "median";
  readonly normalize: "share" | null;
}

/** The threshold a rule starts with. */
export const START: Record<Rule, number | null> = { value: null, top: 10, percent: 5, elbow: 1 };

/** The runs of a task as one map, not divided by anything. */
const reduced = (memo: Memo, task: TaskScores, { reduction }: Threshold): ScoreMap =>
  memo.once(() => reduce(task, reduction), "reduced", task.name, reduction);

/** The map of a task: mean or median over runs, or its share of the whole. */
export function number(memo: Memo, task: TaskScores, settings: Threshold): ScoreMap {
  const map = reduced(memo, task, settings);
  if (!settings.normalize) return map;
  return memo.once(() => share(map), "share", task.name, settings.reduction);
}

/** The sum of |score| over the map of a task. */
export const wholeOf = (memo: Memo, task: TaskScores, settings: Threshold): number =>
  memo.once(() => whole(reduced(memo, task, settings)), "whole", task.name, settings.reduction);

/** What a task's threshold is compared with. */
export function strength(memo: Memo, task: TaskScores, settings: Threshold): ScoreMap {
  const numbers = number(memo, task, settings);
  if (!memo.scores.signed) return numbers;
  const make = (): ScoreMap => {
    if (settings.sign === "either") return sizes(numbers);
    const direction = settings.sign === "helps" ? 1 : -1;
    const signs = reduced(memo, task, settings);
    return filled(
      new Float32Array(memo.cells),
      (i) => Math.abs(numbers[i]!) * Math.sign(signs[i]!) * direction,
    );
  };
  return memo.once(make, "strength", ...strengthKey(task, settings));
}

const strengthKey = (task: TaskScores, { reduction, normalize, sign }: Threshold): unknown[] => [
  task.name,
  reduction,
  normalize,
  sign,
];

/**
 * The strength a head must reach under the rule; null without a threshold. Heads that tie with
 * the last one pass too.
 */
export function cut(memo: Memo, task: TaskScores, settings: Threshold): number | null {
  const { threshold, rule } = settings;
  const { signed } = memo.scores;
  if (threshold === null) return null;
  if (rule === "value") return Math.fround(threshold);
  const strengths = strength(memo, task, settings);
  const key = strengthKey(task, settings);
  let edge: number;
  if (rule === "elbow") {
    edge = Math.fround(threshold * memo.once(() => elbow(strengths, signed), "elbow", ...key));
  } else {
    const sorted = memo.once(() => known(strengths).slice().sort().reverse(), "sorted", ...key);
    const k = kept(rule, threshold, sorted.length);
    if (k === 0) return Number.POSITIVE_INFINITY;
    edge = sorted[k - 1]!;
  }
  return signed ? Math.max(edge, ANY_POSITIVE) : edge;
}

/** How many heads "top" or "percent" keep. */
export function kept(rule: "top" | "percent", threshold: number, heads: number): number {
  const k = rule === "top" ? Math.floor(threshold) : Math.ceil((threshold / 100) * heads - 1e-9);
  return Math.min(Math.max(k, 0), heads);
}

/** Which heads of a task pass the threshold; null without one. */
export function passing(memo: Memo, task: TaskScores, settings: Threshold): Uint8Array | null {
  const edge = cut(memo, task, settings);
  if (edge === null) return null;
  return reaches(strength(memo, task, settings), edge);
}

/**
 * The cut on the scale of the runs: top, percent and elbow do not depend on scale, and a share
 * is turned back.
 */
export function runCut(memo: Memo, task: TaskScores, settings: Threshold): number {
  const edge = cut(memo, task, { ...settings, normalize: null })!;
  if (settings.normalize === null || settings.rule !== "value") return edge;
  const total = wholeOf(memo, task, settings);
  if (total === 0 && edge > 0) return Number.POSITIVE_INFINITY; // of nothing, every share is zero
  return Math.fround(edge * total);
}

/** Each category and its tasks, in the order of the tasks; a task without one is its own. */
export function categoriesOf(scores: Scores): Map<string, string[]> {
  const groups = new Map<string, string[]>();
  for (const { name, category } of scores.tasks) {
    const key = category ?? name;
    groups.set(key, [...(groups.get(key) ?? []), name]);
  }
  return groups;
}

/** Without a threshold, heads are classified at each task's elbow. */
export function forCategories<T extends Threshold>(settings: T): T {
  if (settings.threshold !== null) return settings;
  return { ...settings, rule: "elbow", threshold: START.elbow };
}

/** Each category that has a task shown, and the heads that pass in one of those tasks. */
export function members(memo: Memo, settings: Threshold): Map<string, Uint8Array> {
  const at = forCategories(settings);
  const masks = new Map<string, Uint8Array>();
  for (const [category, names] of categoriesOf(memo.scores)) {
    const shown = names.filter((name) => settings.tasks.includes(name));
    const mask = either(shown.map((name) => passing(memo, memo.task(name)!, at)));
    if (mask) masks.set(category, mask);
  }
  return masks;
}
