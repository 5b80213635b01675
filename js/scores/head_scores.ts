// Scores as the browser has them: every task's maps, and the heads they are about.

/** [layer, head], by the model's own layer number, as in Python. */
export type Head = readonly [number, number];
/** A place in the grid: the layer's row, and the head. */
export interface Cell {
  readonly row: number;
  readonly head: number;
}

/** One map is layers x heads, layer-major. */
export type ScoreMap = Float32Array;

/** How many steps the range of a head has: 0 is its minimum, this its maximum. */
export const STEPS = 65535;

/** What the header says about a task. */
export interface TaskHeader {
  readonly name: string;
  readonly category: string | null;
  /** How well the model did the task and how many prompts were dropped, where that is known. */
  readonly note: string | null;
  /** Why the task's scores should not be believed, where something speaks against them. */
  readonly warning: string | null;
  /** What a score reaches by chance alone, where the method has a control. */
  readonly floor: number | null;
  readonly runs: number;
  /** Which order statistics of the sorted runs are kept, smallest first. */
  readonly ranks: readonly number[];
  /**
   * 32: all order statistics are exact. 16: those between minimum and maximum are steps of the
   * head's range, rounded down.
   */
  readonly bits: number;
  /** Were some heads not measured in some runs? Then a map `measured` stands in the buffer. */
  readonly missing?: boolean;
}

/** What the header says about all tasks. */
export interface ScoresHeader {
  readonly method: string;
  /** Said where the model was scored with heads changed: "3 heads changed". */
  readonly changed?: string;
  /** What a score means, in a sentence of the method's; missing where it is not known. */
  readonly meaning?: string;
  /** How the method works, in its own words, a paragraph each; and its paper with the address. */
  readonly explained?: readonly string[];
  readonly paper?: readonly [string, string];
  /** The settings that they are shown with at first, where their method asks for some. */
  readonly display?: {
    readonly view?: "categories";
    readonly normalize?: "share";
    readonly threshold?: number;
  };
  readonly signed: boolean;
  /** What heads are ranked by: the mean over runs, or its absolute value; missing is "mean". */
  readonly ranked_by?: "mean" | "size";
  readonly model: string;
  readonly partial: boolean;
  /** Where the scores come from: a label and a text each. */
  readonly about: readonly (readonly [string, string])[];
  /** What rows and columns are called. */
  readonly axes: readonly [string, string];
  /** The model's own number of each row. */
  readonly layers: readonly number[];
  /** The sections of an encoder-decoder model's rows, and how many rows each has. */
  readonly sections?: readonly (readonly [string, number])[];
  readonly heads: number;
}

export interface TaskScores extends TaskHeader {
  /** In how many runs each head was measured; null where every head was in every run. */
  readonly measured: ScoreMap | null;
  readonly mean: ScoreMap;
  readonly median: ScoreMap;
  /** Lower and upper end of the 95% bootstrap interval of the mean. */
  readonly low: ScoreMap;
  readonly high: ScoreMap;
  /** The smallest and the largest run. */
  readonly least: ScoreMap;
  readonly most: ScoreMap;
  /**
   * The order statistic at that place of `ranks`; of 16 bits rounded down. A head that was
   * measured in fewer runs has these spread over as many places (`spreadRanks`).
   */
  order(place: number): ScoreMap;
  /** The same, of 16 bits rounded up: for runs that are compared by how far they lie below zero. */
  above(place: number): ScoreMap;
  /**
   * Of 16 bits: how many steps of its head's range each order statistic lies above the minimum;
   * empty where all are exact.
   */
  readonly steps: readonly Uint16Array[];
  /**
   * All of `order` (or, with direction -1, of `above`), the fastest to search in. Of 16 bits
   * null when it is first asked for: to unpack them all would hold up a first paint, which
   * searches the steps instead.
   */
  all(direction: 1 | -1): readonly ScoreMap[] | null;
}

export interface Scores extends ScoresHeader {
  readonly tasks: readonly TaskScores[];
}

/** What lies so many steps above a head's minimum, before it is rounded to float32. */
export function valueAt(steps: number, least: number, most: number): number {
  return steps >= STEPS ? most : least + steps * ((most - least) / STEPS);
}

type Rows = Pick<Scores, "layers" | "sections">;

/** What a row's layer is called: its number, or E0, D0, C0 in sections. */
export function layerLabel({ layers, sections = [] }: Rows, row: number): string {
  let first = 0;
  for (const [name, count] of sections) {
    if (row < first + count) return `${name[0]!.toUpperCase()}${row - first}`;
    first += count;
  }
  return String(layers[row]);
}

/** What sections are called, the share of the rows that each has, and where its middle is. */
export function sectionNames({ layers, sections = [] }: Rows): {
  name: string;
  rows: number;
  middle: number;
}[] {
  let first = 0;
  return sections.map(([section, count]) => {
    const name = `${section[0]!.toUpperCase()}${section.slice(1)}`;
    const middle = (first + count / 2) / layers.length;
    first += count;
    return { name, rows: count / layers.length, middle };
  });
}

/** The rows that begin a section, but for the first. */
export function sectionStarts({ sections = [] }: Rows): number[] {
  let row = 0;
  return sections.slice(0, -1).map(([, count]) => (row += count));
}

/** "L12 H3", in sections "D2 H3" */
export function headName(rows: Rows | null, [layer, head]: Head): string {
  const label = rows?.sections ? layerLabel(rows, rows.layers.indexOf(layer)) : `L${layer}`;
  return `${label} H${head}`;
}

/** The head at a cell, as Python names it. */
export const headAt = ({ layers }: Pick<Scores, "layers">, cell: Cell): Head => [
  layers[cell.row]!,
  cell.head,
];
