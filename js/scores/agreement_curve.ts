// How many heads are on in at least k of n runs, for every k there is a stop for.

import type { TaskScores } from "./head_scores";
import { type Counts, runsNeeded } from "./reduce";

/** The agreements that can be asked for, from any to always: those whose statistic was sent. */
export function agreementStops(tasks: readonly TaskScores[]): number[] {
  const [most] = [...tasks].sort((a, b) => b.runs - a.runs); // the task with most runs
  if (!most) return [1];
  return most.ranks.map((rank) => (most.runs - rank) / most.runs).reverse();
}

/** The stop that stands for an agreement: the first that asks for as much. */
export function stopFor(stops: readonly number[], agreement: number): number {
  const at = stops.findIndex((stop) => stop >= agreement - 1e-9);
  return at < 0 ? stops.length - 1 : at;
}

/**
 * How many heads are on at each stop, in one of the tasks or more. `reached` has for each task
 * how many runs of every head reach the threshold.
 */
export function headsOn(
  tasks: readonly Pick<TaskScores, "runs" | "measured">[],
  reached: readonly Counts[],
  stops: readonly number[],
): number[] {
  const cells = reached[0]?.length ?? 0;
  const reach = new Uint16Array(cells); // how many stops each head is on at: the first so many
  const tables = new Map<number, Uint16Array>();
  const tableOf = (runs: number): Uint16Array => {
    if (!tables.has(runs)) tables.set(runs, stopsReached(stops, runs));
    return tables.get(runs)!;
  };
  tasks.forEach(({ runs, measured }, t) => {
    const counts = reached[t]!;
    let table = tableOf(runs);
    for (let cell = 0; cell < cells; cell++) {
      if (measured) table = tableOf(measured[cell]!);
      const at = table[counts[cell]!]!;
      if (at > reach[cell]!) reach[cell] = at;
    }
  });
  const ends = new Array<number>(stops.length + 1).fill(0);
  for (let cell = 0; cell < cells; cell++) ends[reach[cell]!]!++;
  let on = 0;
  return stops.map((_, i) => (on += ends[stops.length - i]!)).reverse();
}

/** For every number of runs that reach a threshold, at how many stops that is enough. */
function stopsReached(stops: readonly number[], runs: number): Uint16Array {
  const table = new Uint16Array(runs + 1);
  const needed = stops.map((stop) => (runs ? runsNeeded(stop, runs) : 1)); // more and more
  for (let count = 0, at = 0; count <= runs; count++) {
    while (at < needed.length && needed[at]! <= count) at++;
    table[count] = at;
  }
  return table;
}
