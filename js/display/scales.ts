// From numbers to what is drawn: the range of colours, ticks, the threshold's slider, and numbers
// as text.

import type { Rule } from "../scores/threshold";

/** What the colours span. `capped` ends carry a "+": some scores lie beyond them. */
export interface Range {
  readonly low: number;
  readonly high: number;
  readonly step: number;
  readonly lowCapped: boolean;
  readonly highCapped: boolean;
}

/** All scores of some maps, from the least to the largest, without what was not measured. */
export function sortedScores(maps: readonly Float32Array[]): Float32Array {
  const all = new Float32Array(maps.reduce((sum, map) => sum + map.length, 0));
  let at = 0;
  for (const map of maps) {
    all.set(map, at);
    at += map.length;
  }
  const sorted = all.sort(); // on a first paint faster than any loop of ours; NaN comes last
  let end = sorted.length;
  while (end && Number.isNaN(sorted[end - 1]!)) end--;
  return end ? sorted.subarray(0, end) : new Float32Array(1);
}

/**
 * The range of colours. The top is the cap, or a percentile of |score| rounded up to a tick: a
 * handful of strong heads would otherwise make all others look alike. Signed scores get the same
 * reach on both sides of zero.
 */
export function rangeOf(sorted: Float32Array, signed: boolean, cap: number | string | null): Range {
  const [least, most] = [Math.min(0, sorted[0]!), Math.max(0, sorted[sorted.length - 1]!)];
  const steps = signed ? 3 : 4;
  let [high, step] = [0, 0];
  if (typeof cap === "number") [high, step] = [cap, niceStep(cap / steps)];
  else {
    const rank = Math.min(sorted.length - 1, Math.floor((sorted.length * percentile(cap)) / 100));
    const reach = sizeAt(sorted, rank);
    step = niceStep((reach || 1) / steps);
    high = clean(Math.max(1, Math.ceil(reach / step - 1e-6)) * step);
  }
  const low = signed ? -high : clean(Math.floor(least / step + 1e-6) * step);
  if ((high - low) / step > MOST_TICKS) step = niceStep((high - low) / steps);
  return { low, high, step, lowCapped: least < low * 1.000001, highCapped: most > high * 1.000001 };
}

const MOST_TICKS = 12;

/** The |score| of that rank, from the smallest: both ends of the sorted scores are the largest. */
function sizeAt(sorted: Float32Array, rank: number): number {
  let [low, high] = [0, sorted.length - 1];
  while (high - low > rank) {
    if (-sorted[low]! > sorted[high]!) low++;
    else high--;
  }
  return Math.max(-sorted[low]!, sorted[high]!);
}

/** The places of all values among 256 colours. */
export function places(values: ArrayLike<number>, { low, high }: Range): Uint8ClampedArray {
  const out = new Uint8ClampedArray(values.length); // it clamps by itself
  for (let i = 0; i < out.length; i++)
    out[i] = Math.floor(((values[i]! - low) * 255) / (high - low) + 0.5);
  return out;
}

/** The place of a value among 256 colours. */
export const place = (value: number, { low, high }: Range): number =>
  Math.max(0, Math.min(255, Math.floor(((value - low) * 255) / (high - low) + 0.5)));

/** The percentile of |score| where colours end, when the cap is no number. */
const percentile = (cap: string | null): number => (cap === null ? 99.5 : Number.parseFloat(cap));

/** The smallest of 1, 2, 2.5, 5 times a power of ten that is at least `size`. */
export function niceStep(size: number): number {
  const power = 10 ** Math.floor(Math.log10(size) + 1e-9);
  return clean(([1, 2, 2.5, 5].find((n) => n * power >= size * 0.999999) ?? 10) * power);
}

/** 0.30000000000000004 is 0.3. */
export const clean = (value: number): number => Number(value.toPrecision(12));

/** The labels of a colour bar, low to high: every step, and both ends. */
export function barTicks({
  low,
  high,
  step,
  lowCapped,
  highCapped,
}: Range): { value: number; label: string }[] {
  const near = step / 2;
  const inner: number[] = [];
  for (let k = Math.ceil(low / step - 0.5); k <= Math.floor(high / step + 0.5); k++)
    inner.push(clean(k * step));
  const places = [low, ...inner.filter((p) => p > low + near && p < high - near), high];
  const digits = [decimalsOf(step), decimalsOf(high)];
  const decimals = Math.min(...digits) < 0 ? -1 : Math.max(...digits);
  return places.map((value, i) => {
    const more = (i === 0 && lowCapped) || (i === places.length - 1 && highCapped) ? "+" : "";
    return { value, label: fixed(value, decimals) + more };
  });
}

/** Where a map's own colours end, in few letters: "0.30+", "±0.30", "−0.05 to 0.30". */
export function endText(range: Range): string {
  const labels = barTicks(range).map(({ label }) => label);
  const [first, last] = [labels[0]!, labels[labels.length - 1]!];
  if (range.low === 0) return last;
  return range.low === -range.high ? `±${last}` : `${first} to ${last}`;
}

/** Digits that a number needs after its point, or -1 where powers of ten read better. */
function decimalsOf(step: number): number {
  if (step < 1e-5 || step >= 1e5) return -1;
  let decimals = 0;
  while (decimals < 8 && Math.abs(step * 10 ** decimals - Math.round(step * 10 ** decimals)) > 1e-6)
    decimals++;
  return decimals;
}

/** A number with so many digits after the point and a true minus sign. */
function fixed(value: number, decimals: number): string {
  const text =
    decimals < 0 ? (value === 0 ? "0" : value.toExponential(1)) : value.toFixed(decimals);
  return (Number(text) === 0 ? text.replace("-", "") : text).replace(/-/g, "−");
}

/** Scores as text, all with the same digits, fine enough for the range of colours. */
export function formatter(range: {
  readonly low: number;
  readonly high: number;
}): (value: number) => string {
  const size = Math.max(Math.abs(range.low), Math.abs(range.high));
  if (size < 1e-4 || size >= 1e5) return (value) => value.toExponential(2).replace(/-/g, "−");
  const decimals = Math.max(0, 2 - Math.floor(Math.log10(size) + 1e-9));
  return (value) => fixed(value, decimals);
}

/** How far apart ticks may stand: sixes give every 6 in grids, as in the papers. */
export const SIXES = [1, 2, 3, 6, 12, 24, 48, 96];
/** As in the published figure of categories: every 16 of 80 layers. */
export const EIGHTS = [1, 2, 4, 8, 16, 32, 64, 128];

/** Rows or columns that get a tick: the closest spacing with eight or fewer and room for labels. */
export function ticks(
  count: number,
  steps: readonly number[],
  pixelsEach = 1,
  apart = 0,
): number[] {
  const fits = (step: number): boolean => count / step <= 8.5 && step * pixelsEach >= apart;
  const step = steps.find(fits) ?? Math.ceil(count / 4);
  return Array.from({ length: Math.ceil(count / step) }, (_, i) => i * step);
}

// ---- the threshold's slider: its first position is "off", then one for each stop ----

/** What the slider's number is, under a rule. */
export const unitOf = (rule: Rule, name: string): string =>
  ({
    value: `${name} at least`,
    top: "strongest heads of each task",
    percent: "% strongest of each task",
    elbow: "times each task’s elbow",
  })[rule];

const PERCENTS = [
  0.1, 0.2, 0.5, 1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 25, 30, 40, 50, 60, 70, 80,
  90, 100,
];

/** Where the slider can stand under a rule, from the least and the largest strength there is. */
export function sliderStops(
  rule: Rule,
  heads: number,
  low: number,
  high: number,
): readonly number[] {
  if (rule === "top") return counts(heads);
  if (rule === "percent") return PERCENTS;
  if (rule === "elbow") return Array.from({ length: 100 }, (_, i) => clean((i + 1) * 0.05));
  const step = niceStep((high - low || 1) / 400);
  const from = Math.floor(low / step);
  const length = Math.ceil(high / step + 1e-6) - from;
  return Array.from({ length }, (_, i) => clean((from + i + 1) * step));
}

/** Numbers of heads: one by one at first, then in growing steps, about 150 in all. */
function counts(heads: number): number[] {
  if (heads <= 150) return Array.from({ length: heads }, (_, i) => i + 1);
  const numbers = new Set<number>();
  for (let i = 0; i <= 220; i++) numbers.add(Math.round(heads ** (i / 220)));
  return [...numbers];
}

/** The slider's position for a threshold: 0 is off. */
export function position(stops: readonly number[], threshold: number | null): number {
  if (threshold === null) return 0;
  let [low, high] = [0, stops.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (stops[middle]! < threshold) low = middle + 1;
    else high = middle;
  }
  const nearer = low > 0 && threshold - stops[low - 1]! < stops[low]! - threshold ? low - 1 : low;
  return nearer + 1;
}

/** A number as a user would type it: at most six digits that mean something. */
export const typed = (value: number): string => String(Number(value.toPrecision(6)));

const DECIMAL = /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i;
const THOUSANDS = /^[-+]?[1-9]\d{0,2},\d{3}$/;

/**
 * What a user typed as a decimal number, or NaN. A comma may stand for the point, but not in
 * "1,000", which is a thousand to some and one to others.
 */
export function parsed(text: string): number {
  const plain = text.trim().replace("−", "-").replace(/%$/, "").trimEnd();
  const decimal = plain.replace(",", ".");
  return DECIMAL.test(decimal) && !THOUSANDS.test(plain) ? Number(decimal) : Number.NaN;
}
