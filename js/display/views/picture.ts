// What a view shows: the words that views, layout and panels share. Panels ask the picture, never
// which view it is of.

import type { ScoreMap } from "../../scores/head_scores";
import type { Range } from "../scales";
import type { MapName } from "../settings";

/** One map: its values, layer-major, and which heads are bright (null: all of them). */
export interface Panel {
  readonly title: string;
  /** The number of every head, or its class: a place in the legend. */
  readonly values: ScoreMap | Uint16Array;
  readonly passes: Uint8Array | null;
  /** Which heads were not measured; null or absent: all were. */
  readonly missing?: Uint8Array | null;
  /** The place of every value among 256 colours, where it is known without its value. */
  readonly places?: Uint8ClampedArray | null;
  readonly task: string | null;
}

/** A class of the legend. */
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
  /** The classes of heads by place; empty where colours are a scale. */
  readonly legend: readonly Entry[];
  /** Where the threshold stands on the scale; empty where that is another place for each task. */
  readonly cuts: readonly number[];
  /** What a score reaches by chance alone, the largest of the tasks shown; null: not known. */
  readonly floor: number | null;
  /** Are there numbers on both sides of zero, so that a floor stands on both? */
  readonly signed: boolean;
  /** The row and column of each panel where they are fixed; null: one after the other. */
  readonly slots: readonly (readonly [number, number])[] | null;
  /** How far apart the ticks of layers may stand. */
  readonly layerTicks: readonly number[];
  /** The word behind the number of passing heads; null: the heads of a class are counted. */
  readonly countWord: "on" | "pass" | null;
  /** CSS pixels that a map may be high, where that is not left to the layout. */
  readonly tallest?: number;
}

/** The colour map of a picture's scale; null where it has a legend instead. */
export const scaleOf = ({ colours, legend }: Picture): MapName | null =>
  legend.length ? null : (colours as MapName);

/** Is there no task to show? A legend's picture still has the map of all classes. */
export const isEmpty = ({ panels, legend }: Picture): boolean =>
  panels.length <= (legend.length ? 1 : 0);
