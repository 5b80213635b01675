// The tasks view: one panel a task, the mean (or median, or share) over runs. Twin of
// headwidget/display/views/tasks.py.

import type { ScoreMap, TaskScores } from "../../scores/head_scores";
import { either, ends, highest } from "../../scores/masks";
import type { Memo } from "../../scores/memo";
import { number, passing, wholeOf } from "../../scores/threshold";
import { rangeOf, SIXES, sortedScores } from "../scales";
import type { Settings } from "../settings";
import type { Picture } from "./picture";
import { largestOf, meanName, missingIn, scaleFor, View } from "./view";

export class Tasks extends View {
  readonly name = "tasks";
  readonly title = "Tasks";
  readonly about = "One map a task";
  readonly uses: ReadonlySet<keyof Settings> = new Set([
    ...(["tasks", "task", "threshold", "rule", "sign", "reduction", "normalize"] as const),
    ...(["colormap", "scale", "cap", "orientation", "columns"] as const),
  ]);

  picture(memo: Memo, settings: Settings): Picture {
    const shown = this.tasks(memo, settings);
    const signed = memo.scores.signed && settings.normalize === null;
    const { cap, reduction, normalize, scale } = settings;
    const range = memo.once(
      () => rangeOf(allNumbers(memo, settings), signed, cap),
      ...["range", reduction, normalize, cap],
    );
    const panels = shown.map((task) => {
      const values = number(memo, task, settings);
      const key = [task.name, reduction, normalize];
      return {
        title: task.name,
        values,
        passes: passing(memo, task, settings),
        missing: missingIn(memo, task),
        task: task.name,
        ...scaleFor(
          range,
          settings,
          () => memo.once(() => rangeOf(sortedScores([values]), signed, cap), "own", cap, ...key),
          () => memo.once(() => largestOf([values]), "largest", ...key),
        ),
      };
    });
    return {
      panels,
      range,
      colours: settings.colormap ?? (signed ? "blue-orange" : "viridis"),
      label: meanName(memo.scores, settings),
      layersOn: settings.orientation ?? "y",
      columns: settings.columns,
      passing: either(panels.map((panel) => panel.passes)),
      legend: [],
      // On a scale of its own each map has them at another place.
      cuts: scale === "own" ? [] : cutsOf(settings, signed),
      floor: scale === "own" ? null : highest(shown.map((task) => floorOf(memo, task, settings))),
      signed,
      slots: null,
      layerTicks: SIXES,
      countWord: "pass",
      opens: settings.task === null && shown.length > 1,
    };
  }

  protected override ends(memo: Memo, settings: Settings): readonly [number, number] {
    const sorted = allNumbers(memo, settings); // the colours need it too
    return ends([[sorted[0]!, sorted[sorted.length - 1]!]]);
  }
}

/** Every task's numbers, hidden ones too, so that no colour changes when a task is hidden. */
function allNumbers(memo: Memo, settings: Settings): ScoreMap {
  const maps = () => memo.scores.tasks.map((task) => number(memo, task, settings));
  const { reduction, normalize } = settings;
  return memo.once(() => sortedScores(maps()), "all numbers", reduction, normalize);
}

/** Where the threshold stands on the colour bar, when one number is the cut of every task. */
function cutsOf({ threshold, rule, sign }: Settings, signed: boolean): number[] {
  if (threshold === null || rule !== "value") return [];
  const above = !signed || sign !== "hurts" ? [threshold] : [];
  const below = signed && sign !== "helps" ? [-threshold] : [];
  return [...above, ...below];
}

/** What a task's score reaches by chance alone, on the scale of the numbers. */
function floorOf(memo: Memo, task: TaskScores, settings: Settings): number | null {
  if (task.floor === null || !settings.normalize) return task.floor;
  const total = wholeOf(memo, task, settings);
  return total > 0 ? task.floor / total : null;
}
