// What a view can be asked for. Every setting is a trait of the explorer in Python, which checks it (headwidget/settings.py).

export type View = "tasks" | "agreement" | "categories";
export type Rule = "value" | "top" | "percent" | "elbow";
export type Sign = "either" | "helps" | "hurts";
export type MapName = "viridis" | "cividis" | "magma" | "turbo" | "blue-orange";

export interface Settings {
  readonly view: View;
  /** The tasks that are shown, in order. */
  readonly tasks: readonly string[];
  /** One task alone, large. */
  readonly task: string | null;
  readonly threshold: number | null;
  readonly rule: Rule;
  /** A fraction of the runs, from 0 (any) to 1 (always). */
  readonly agreement: number;
  /** What counts as strong when scores are signed. */
  readonly sign: Sign;
  readonly reduction: "mean" | "median";
  readonly normalize: "share" | null;
  readonly colormap: MapName | null;
  /** Where colours end: a score, a percentile such as "99%", or null to choose. */
  readonly cap: number | string | null;
  /** The axis that has the layers; null is y, in the categories view x. */
  readonly orientation: "y" | "x" | null;
  readonly columns: number | null;
  /** The class of the categories' legend that stands out. */
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
  cap: null,
  orientation: null,
  columns: null,
  isolated: null,
};

/** The threshold a rule starts with. */
export const START: Record<Rule, number | null> = { value: null, top: 10, percent: 5, elbow: 1 };
