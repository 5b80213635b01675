// The distribution of what a threshold is compared with, as bars, and the way between places on
// its axis and thresholds.

import type { TaskScores } from "../scores/head_scores";
import type { Memo } from "../scores/memo";
import type { Rule } from "../scores/threshold";
import { sliderStops } from "./scales";
import type { Settings } from "./settings";
import { viewOf } from "./views";
import type { Compared } from "./views/view";

/** How many bars there are; an even number, so that zero stands between two of signed scores. */
export const BINS = 120;
/** How high the highest bar is, in units of its drawing. */
export const HIGH = 36;
const LOWEST = 2; // the lowest bar: one strong head among thousands must be seen

/** What the axis spans: every rule, sign and choice of tasks has the same. */
export interface Axis {
  readonly low: number;
  readonly high: number;
}

/** Which sides of zero a threshold cuts on. */
export interface Sides {
  readonly above: boolean;
  readonly below: boolean;
}

export const sidesOf = (signed: boolean, sign: Settings["sign"]): Sides => ({
  above: !signed || sign !== "hurts",
  below: signed && sign !== "helps",
});

/** Where the threshold's slider can stand under a rule; kept while it is dragged. */
export function stopsOf(memo: Memo, settings: Settings, rule: Rule): readonly number[] {
  const [low, high] = viewOf(settings).extent(memo, settings);
  return memo.once(() => sliderStops(rule, memo.cells, low, high), "slider", rule, low, high);
}

/** The axis of all tasks, hidden ones too, so that nothing moves when a task is hidden. */
export function axisOf(memo: Memo, settings: Settings): Axis {
  const [low] = viewOf(settings).extent(memo, settings);
  const high = stopsOf(memo, settings, "value").at(-1)!;
  return { low: memo.scores.signed ? -high : low, high };
}

/** Where a value stands on the axis, from 0 to 1. */
export const placeOn = ({ low, high }: Axis, value: number): number =>
  Math.max(0, Math.min(1, (value - low) / (high - low)));

/** How many numbers fall on each bar: missing ones on none, those beyond the axis on its ends. */
export function binned({ maps, whole }: Compared, { low, high }: Axis): Uint32Array {
  const counts = new Uint32Array(BINS);
  const [from, scale] = [low * whole, BINS / (high - low) / whole];
  for (const map of maps) {
    for (let i = 0; i < map.length; i++) {
      const bin = Math.floor((map[i]! - from) * scale);
      if (bin >= 0) counts[bin < BINS ? bin : BINS - 1]!++;
      else if (bin < 0) counts[0]!++;
    }
  }
  return counts;
}

/** How many numbers of each bar pass, when every task has a cut of its own. */
export function passingBins(
  tasks: readonly Uint32Array[],
  cuts: readonly (number | null)[],
  axis: Axis,
  { above, below }: Sides,
): Uint32Array {
  const out = new Uint32Array(BINS);
  const width = (axis.high - axis.low) / BINS;
  tasks.forEach((counts, task) => {
    const cut = cuts[task] ?? Number.NEGATIVE_INFINITY; // none: every head counts
    for (let bin = 0; bin < BINS; bin++) {
      const middle = axis.low + (bin + 0.5) * width;
      if ((above && middle >= cut) || (below && -middle >= cut)) out[bin]! += counts[bin]!;
    }
  });
  return out;
}

/** The sum of several tasks' bars. */
export function total(tasks: readonly Uint32Array[]): Uint32Array {
  const out = new Uint32Array(BINS);
  for (const counts of tasks) for (let bin = 0; bin < BINS; bin++) out[bin]! += counts[bin]!;
  return out;
}

/**
 * The outline of bars from one bin to another, as a path that is BINS wide and HIGH high. Heights
 * are logarithms, so that few strong heads are seen beside thousands of weak ones.
 */
export function outline(counts: Uint32Array, most: number, from = 0, to = BINS): string {
  const scale = (HIGH - LOWEST) / Math.log(Math.max(most, 2));
  let path = "";
  let before = 0;
  for (let bin = from; bin <= to; bin++) {
    const count = bin < to ? counts[bin]! : 0;
    const height = count ? Math.round(10 * (LOWEST + Math.log(count) * scale)) / 10 : 0;
    if (height === before) continue;
    path += `${before ? "H" : "M"}${bin}${before ? "" : ` ${HIGH}`}V${HIGH - height}`;
    if (!height) path += "Z";
    before = height;
  }
  return path;
}

/** What each task shown must reach, as the view cuts it; all null without a cut. */
export const cutsOf = (
  memo: Memo,
  shown: readonly TaskScores[],
  settings: Settings,
): (number | null)[] => shown.map((task) => viewOf(settings).cut(memo, task, settings));

/** The middle one of the cuts; of two the lower. */
export function middleCut(cuts: readonly (number | null)[]): number | null {
  const sorted = cuts.filter((cut) => cut !== null).sort((a, b) => a - b);
  return sorted[(sorted.length - 1) >> 1] ?? null;
}

/** Where each stop of the rule cuts the middle task: the place that a drag goes to. */
export function stopCuts(
  memo: Memo,
  shown: readonly TaskScores[],
  settings: Settings,
): readonly number[] {
  const { rule, sign, reduction, normalize, view, tasks, task } = settings;
  const stops = stopsOf(memo, settings, rule);
  if (rule === "value") return stops;
  const key = [sign, reduction, normalize, view, tasks, task];
  return memo.latest(stops, key, () =>
    stops.map(
      (threshold) =>
        middleCut(cutsOf(memo, shown, { ...settings, threshold })) ?? Number.POSITIVE_INFINITY,
    ),
  );
}

/**
 * The threshold whose cut is nearest to a value of the axis; null where the slider is off: at the
 * weak end, of rules whose number grows with the cut.
 */
export function thresholdAt(memo: Memo, settings: Settings, value: number): number | null {
  const { above, below } = sidesOf(memo.scores.signed, settings.sign);
  const strength = above && below ? Math.abs(value) : below ? -value : value;
  const view = viewOf(settings);
  const stops = stopsOf(memo, settings, settings.rule);
  const cuts = stopCuts(memo, view.tasks(memo, settings), settings);
  const [weakest] = view.extent(memo, settings);
  const at = nearest(cuts, strength);
  const rising = settings.rule === "value" || settings.rule === "elbow";
  if (rising && at === 0 && strength - weakest < (cuts[0]! - weakest) / 2) return null;
  return stops[at]!;
}

/** The first of the numbers that are nearest to a value. */
export function nearest(numbers: readonly number[], value: number): number {
  let best = 0;
  for (let i = 1; i < numbers.length; i++)
    if (Math.abs(numbers[i]! - value) < Math.abs(numbers[best]! - value)) best = i;
  return best;
}
