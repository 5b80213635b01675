// What a view shows: the words that views, layout and panels share.

import type { Range } from "./scales";
import type { MapName } from "./settings";
import type { ScoreMap } from "./wire";

/** One map: its values, layer-major, and which heads are bright (null: all of them). */
export interface Panel {
  readonly title: string;
  /** The number of every head; in the categories view its class, a place in the legend. */
  readonly values: ScoreMap | Uint16Array;
  readonly passes: Uint8Array | null;
  /** The place of every value among 256 colours, where it is known without its value. */
  readonly places?: Uint8ClampedArray | null;
  readonly task: string | null;
}

/** A class of the categories' legend. */
export interface Entry {
  readonly name: string;
  readonly count: number;
}

export interface Picture {
  readonly panels: readonly Panel[];
  readonly range: Range;
  /** The colour map's name; "categories" when values are places in the legend. */
  readonly colours: MapName | "categories";
  /** What the numbers are. */
  readonly label: string;
  readonly layersOn: "y" | "x";
  /** How many panels stand side by side; null: as many as fit. */
  readonly columns: number | null;
  /** Heads that pass in a task shown, or more; null: no threshold. */
  readonly passing: Uint8Array | null;
  readonly legend: readonly Entry[];
  /** What a score reaches by chance alone, the largest of the tasks shown; null where it is not known. */
  readonly floor: number | null;
  /** The row and column of each panel where they are fixed (a row a task); null: one after the other. */
  readonly slots: readonly (readonly [number, number])[] | null;
  /** CSS pixels that a map may be high, where that is not left to the layout. */
  readonly tallest?: number;
}
