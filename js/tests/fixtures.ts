// What several tests need: bytes of the golden fixtures, and small scores.

import type { Scores, TaskScores } from "../scores/head_scores";
import { keptStatistics } from "../scores/reduce";

export const bytes = (text: string): Uint8Array =>
  Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
/** A map as numbers, without -0. */
export const list = (map: ArrayLike<number>): number[] => Array.from(map, (value) => value + 0);

/** A task as the wire would bring it, from its runs. */
export function task(
  name: string,
  runs: readonly (readonly number[])[],
  category: string | null = null,
): TaskScores {
  const cells = runs[0]!.map((_, i) => runs.map((run) => run[i]!).sort((a, b) => a - b));
  const kept = keptStatistics(runs.length);
  const order = kept.map((rank) => Float32Array.from(cells, (cell) => cell[rank]!));
  const mean = Float32Array.from(
    cells,
    (cell) => cell.reduce((sum, value) => sum + value, 0) / cell.length,
  );
  const middle = (cell: number[]): number =>
    (cell[Math.floor(cell.length / 2)]! + cell[Math.floor((cell.length - 1) / 2)]!) / 2;
  const median = Float32Array.from(cells, middle);
  const header = {
    name,
    category,
    note: null,
    warning: null,
    floor: null,
    runs: runs.length,
    ranks: kept,
    bits: 32,
  };
  return {
    ...header,
    measured: null,
    mean,
    median,
    low: mean,
    high: mean,
    least: order[0]!,
    most: order[order.length - 1]!,
    order: (place) => order[place]!,
    above: (place) => order[place]!,
    steps: [],
    all: () => order,
  };
}

/** Scores of these tasks, rows numbered as in `layers`. */
export function scoresOf(
  tasks: readonly TaskScores[],
  layers: readonly number[],
  signed = false,
): Scores {
  const heads = tasks[0]!.mean.length / layers.length;
  const about = {
    version: 3,
    method: "mine",
    model: "tiny",
    partial: false,
    about: [],
    axes: ["Layer", "Head"] as const,
  };
  return { ...about, layers, heads, signed, tasks };
}

/** Numbers of JSON, where null stands for what was not measured. */
export const floats = (numbers: readonly (number | null)[]): Float32Array =>
  Float32Array.from(numbers, (number) => number ?? Number.NaN);
