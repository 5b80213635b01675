// From numbers to what is drawn: colours, colour range, ticks, and numbers as text.

import type { Scores } from "./wire";

export type Rgb = readonly [number, number, number];
export type Scheme = "light" | "dark";

// viridis, sampled at 17 places
const VIRIDIS =
  "440154 48186a 472d7b 424086 3b528b 33638d 2c728e 26828e 21918c 1fa088 28ae80 3fbc73 5ec962 84d44b addc30 d8e219 fde725";
// Blue to orange stays apart for every kind of colour vision. Zero takes the page's own tone: white maps glare on a dark page.
const DIVERGING: Record<Scheme, string> = {
  light: "08306b 1a5ba3 3f87c8 7bb1dd b9d5ea f3f2ef f8d3ad f2aa66 e07f2c b5580f 6b2f04",
  dark: "c4e3ff 86c1f5 4b98dc 2b6ca6 21466a 24272b 5f3d1d 9b5a1c d67f2a f7b161 ffe3bd",
};

const hex = (text: string): Rgb => [0, 2, 4].map((i) => Number.parseInt(text.slice(i, i + 2), 16)) as unknown as Rgb;

/** The colour map for these scores, as its stops from low to high. */
export function stops(signed: boolean, scheme: Scheme): Rgb[] {
  return (signed ? DIVERGING[scheme] : VIRIDIS).split(" ").map(hex);
}

/** 256 colours between the stops. */
export function ramp(colours: readonly Rgb[]): Rgb[] {
  return Array.from({ length: 256 }, (_, i) => {
    const at = (i / 255) * (colours.length - 1);
    const low = Math.min(Math.floor(at), colours.length - 2);
    const [a, b] = [colours[low]!, colours[low + 1]!];
    return [0, 1, 2].map((c) => Math.round(a[c]! + (b[c]! - a[c]!) * (at - low))) as unknown as Rgb;
  });
}

/** Colours as canvas pixels of that opacity, four bytes each. */
export function pixels(colours: readonly Rgb[], opacity: number): Uint32Array {
  const bytes = Uint8Array.from(colours.flatMap(([r, g, b]) => [r, g, b, Math.round(255 * opacity)]));
  return new Uint32Array(bytes.buffer);
}

/** What the colours span. `capped` ends carry a "+": some scores lie beyond them. */
export interface Range {
  readonly low: number;
  readonly high: number;
  readonly step: number;
  readonly lowCapped: boolean;
  readonly highCapped: boolean;
}

/**
 * The range of colours for all tasks together, hidden ones too, so that no colour changes when a task is hidden.
 *
 * The top is the 99.5th percentile rounded up to a tick: a handful of strong heads would otherwise make all others look
 * alike. Signed scores get the same reach on both sides of zero.
 */
export function colourRange(scores: Scores): Range {
  let [least, most] = [0, 0];
  const sizes: number[] = [];
  for (const task of scores.tasks) {
    for (const value of task.mean) {
      if (value < least) least = value;
      if (value > most) most = value;
      sizes.push(Math.abs(value));
    }
  }
  sizes.sort((a, b) => a - b);
  const reach = sizes[Math.min(sizes.length - 1, Math.floor(sizes.length * 0.995))] ?? 0;
  const step = niceStep((reach || 1) / (scores.signed ? 3 : 4));
  const high = clean(Math.max(1, Math.ceil(reach / step - 1e-6)) * step);
  const low = scores.signed ? -high : clean(Math.floor(least / step + 1e-6) * step);
  return { low, high, step, lowCapped: least < low * 1.000001, highCapped: most > high * 1.000001 };
}

/** The smallest of 1, 2, 2.5, 5 times a power of ten that is at least `size`. */
export function niceStep(size: number): number {
  const power = 10 ** Math.floor(Math.log10(size) + 1e-9);
  return clean((([1, 2, 2.5, 5].find((n) => n * power >= size * 0.999999) ?? 10) as number) * power);
}

/** 0.30000000000000004 is 0.3. */
export const clean = (value: number): number => Number(value.toPrecision(12));

/** The labels of a colour bar, low to high. */
export function barTicks(range: Range): { value: number; label: string }[] {
  const decimals = decimalsOf(range.step);
  const count = Math.round((range.high - range.low) / range.step);
  return Array.from({ length: count + 1 }, (_, i) => {
    const value = clean(range.low + i * range.step);
    const more = (i === 0 && range.lowCapped) || (i === count && range.highCapped) ? "+" : "";
    return { value, label: fixed(value, decimals) + more };
  });
}

/** Digits that a number needs after its point, or -1 where powers of ten read better. */
function decimalsOf(step: number): number {
  if (step < 1e-5 || step >= 1e5) return -1;
  let decimals = 0;
  while (decimals < 8 && Math.abs(step * 10 ** decimals - Math.round(step * 10 ** decimals)) > 1e-6) decimals++;
  return decimals;
}

/** A number with so many digits after the point and a true minus sign. */
function fixed(value: number, decimals: number): string {
  const text = decimals < 0 ? (value === 0 ? "0" : value.toExponential(1)) : value.toFixed(decimals);
  return (Number(text) === 0 ? text.replace("-", "") : text).replace("-", "−");
}

/** A multiple of `step` with the digits that `step` has. */
export const stepped = (value: number, step: number): string => fixed(value, decimalsOf(step));

/** Scores as text, all with the same digits, fine enough for the range of colours. */
export function formatter(range: Range): (value: number) => string {
  const size = Math.max(Math.abs(range.low), Math.abs(range.high));
  if (size < 1e-4 || size >= 1e5) return (value) => value.toExponential(2).replace(/-/g, "−");
  const decimals = Math.max(0, 2 - Math.floor(Math.log10(size) + 1e-9));
  return (value) => fixed(value, decimals);
}

/** Rows or columns that get a tick: every 6 for grids as in the papers, closer for small ones, wider for large ones. */
export function ticks(count: number, pixelsEach: number, apart: number): number[] {
  const fits = (step: number): boolean => count / step <= 8.5 && step * pixelsEach >= apart;
  const step = [1, 2, 3, 6, 12, 24, 48, 96].find(fits) ?? Math.ceil(count / 4);
  return Array.from({ length: Math.ceil(count / step) }, (_, i) => i * step);
}

export interface Slider {
  readonly low: number;
  readonly high: number;
  readonly step: number;
}

/** How far the threshold slider goes, and in which steps. Signed scores are compared by size. */
export function sliderRange(scores: Scores): Slider {
  let [least, most] = [0, 0];
  for (const task of scores.tasks) {
    for (const value of task.mean) {
      const size = scores.signed ? Math.abs(value) : value;
      if (size < least) least = size;
      if (size > most) most = size;
    }
  }
  const step = niceStep((most - least || 1) / 400);
  return { low: clean(Math.floor(least / step) * step), high: clean(Math.ceil(most / step + 1e-6) * step), step };
}
