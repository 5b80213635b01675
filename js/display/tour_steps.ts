// What the tour says, step by step: two plain sentences each.

import type { Scores } from "../scores/head_scores";

export interface TourStep {
  readonly title: string;
  /** What is outlined: the first of these that is shown. */
  readonly at: readonly string[];
  readonly text: string;
}

/** The steps of these scores; where a part is not shown, its step is left out. */
export const tourSteps = (scores: Pick<Scores, "method" | "meaning"> | null): TourStep[] => [
  {
    title: "What is measured",
    at: [".hw-meaning", ".hw-title"],
    text:
      "Attention heads are the parts of a transformer that move information between tokens, and " +
      `each has a score. ${meaningOf(scores)}`,
  },
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
      "and its colour is its score. The bar beside the maps says which colour is which number.",
  },
  {
    title: "One head",
    at: [".hw-inspector", ".hw-status"],
    text:
      "Point at a head, or click it to select it, and read its number in every task. " +
      "Hold Shift to add heads, or drag a box over many.",
  },
  {
    title: "Run and turn off",
    at: [".hw-run"],
    text:
      "Run scores the heads of the model in this notebook, and cells fill as they land. " +
      "Then turn a selected head off, and see what that does to the prompt and to the tasks.",
  },
  {
    title: "Save",
    at: [".hw-save"],
    text:
      "Keep what you see as a picture, a table, a page that opens without Python, or the Python " +
      "that makes it again. Try anything: Ctrl+Z takes a step back, and behind More is the rest.",
  },
];

const meaningOf = (scores: Pick<Scores, "method" | "meaning"> | null): string =>
  scores?.meaning
    ? `Here: ${scores.meaning}`
    : "About, behind More, says by which method it was measured.";
