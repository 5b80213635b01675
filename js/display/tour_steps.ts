// What the tour says, step by step: two plain sentences each.

import type { Scores } from "../scores/head_scores";

export interface TourStep {
  readonly title: string;
  /** What is outlined: the first of these that is shown. */
  readonly at: readonly string[];
  readonly text: string;
}

/** The six steps; the score of these scores is explained where its method says what it means. */
export const tourSteps = (scores: Pick<Scores, "method" | "meaning"> | null): TourStep[] => [
  {
    title: "Views",
    at: [".hw-views"],
    text:
      "Three ways to look at the same scores: Tasks has a map for each task, Agreement shows in " +
      "how many runs a head counts, Categories which kinds of tasks it serves. " +
      "Switch as you like, nothing is worked out anew.",
  },
  {
    title: "Threshold",
    at: [".hw-cut"],
    text:
      "The threshold says from which score on a head counts, and the others fade. " +
      "Drag it, type a number, or choose a rule such as the top 10 heads of each task.",
  },
  {
    title: "Maps",
    at: [".hw-maps"],
    text:
      "Each cell is one attention head, its layer along one side and its number along the other, " +
      `and its colour is its score. ${meaningOf(scores)}`,
  },
  {
    title: "One head",
    at: [".hw-inspector", ".hw-status"],
    text:
      "Point at a head, or click it to select it, and read its number in every task. " +
      "Hold Shift to add heads, or drag a box over many.",
  },
  {
    title: "Tasks",
    at: [".hw-chips"],
    text:
      "A chip stands for a task: a click shows or hides its map, a drag moves it. " +
      "One at a time makes one map as large as there is room.",
  },
  {
    title: "Save",
    at: [".hw-save"],
    text:
      "Keep what you see as a picture, a table, a page that opens without Python, or the Python " +
      "that makes it again. Try anything: ↶ takes a step back, and Reset in Display begins anew.",
  },
];

const meaningOf = (scores: Pick<Scores, "method" | "meaning"> | null): string =>
  scores?.meaning
    ? `What a score of ${scores.method} means: ${scores.meaning}`
    : "About says by which method it was measured.";
