// What a view can be asked for. Every setting is a trait of the explorer in Python, which checks
// it (headwidget/display/settings.py).

import type { Threshold } from "../scores/threshold";

export type ViewName = "tasks" | "agreement" | "categories";
export type MapName = "viridis" | "cividis" | "magma" | "turbo" | "blue-orange";

export interface Settings extends Threshold {
  readonly view: ViewName;
  /** One task alone, large. */
  readonly task: string | null;
  /** A fraction of the runs, from 0 (any) to 1 (always). */
  readonly agreement: number;
  readonly colormap: MapName | null;
  /** One scale of colours for all maps, or each task its own. */
  readonly scale: "shared" | "own";
  /** Where colours end: a score, a percentile such as "99%", or null to choose. */
  readonly cap: number | string | null;
  /** The axis that has the layers; null is as the view has it. */
  readonly orientation: "y" | "x" | null;
  readonly columns: number | null;
  /** The class of the legend that stands out. */
  readonly isolated: string | null;
}

export const DEFAULTS: Settings = {
  view: "tasks",
  tasks: [],
  task: null,
  threshold: null,
  rule: "value",
  agreement: 1,
  sign: "either",
  reduction: "mean",
  normalize: null,
  colormap: null,
  scale: "shared",
  cap: null,
  orientation: null,
  columns: null,
  isolated: null,
};
