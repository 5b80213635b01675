// The contract of a view: what it is called, which settings it reads, and what it draws. Twin of
// headwidget/display/views/view.py.

import type { ScoreMap, Scores, TaskScores } from "../../scores/head_scores";
import { ends } from "../../scores/masks";
import type { Memo } from "../../scores/memo";
import { neverMeasured } from "../../scores/missing";
import type { Counts } from "../../scores/reduce";
import { cut, number, passing, strength } from "../../scores/threshold";
import type { Range } from "../scales";
import type { Settings, ViewName } from "../settings";
import type { Panel, Picture } from "./picture";

/** Numbers that a threshold is compared with: those of `maps`, each divided by `whole`. */
export interface Compared {
  readonly maps: readonly ScoreMap[];
  readonly whole: number;
}

/** One way to show scores. Methods that a view does not override behave as in the tasks view. */
export abstract class View {
  abstract readonly name: ViewName;
  /** What people call it. */
  abstract readonly title: string;
  /** What it shows, in a few words. */
  abstract readonly about: string;
  /** The settings that its picture depends on, besides `view`. */
  abstract readonly uses: ReadonlySet<keyof Settings>;
  /** Does it draw the mean, the median or a share, whichever is chosen? */
  readonly showsNumber: boolean = true;
  /** What the number of passing heads counts. */
  readonly counted: string = "Heads that pass in one of the tasks shown, or more";

  /** All that the view draws; `held` while the agreement is dragged. */
  abstract picture(memo: Memo, settings: Settings, held?: boolean): Picture;

  /** The tasks it is about, in order: one alone when `task` names it. */
  tasks(memo: Memo, settings: Settings): TaskScores[] {
    const alone =
      settings.task !== null && this.uses.has("task") ? memo.task(settings.task) : undefined;
    if (alone) return [alone];
    return settings.tasks.map((name) => memo.task(name)).filter((task) => task !== undefined);
  }

  /** Which heads of a task pass, as the view counts it; null: no threshold. */
  passes(memo: Memo, task: TaskScores, settings: Settings): Uint8Array | null {
    return passing(memo, task, settings);
  }

  /** What a task's threshold is compared with, helping heads above zero and hurting ones below. */
  compared(memo: Memo, task: TaskScores, settings: Settings): Compared {
    return { maps: [strength(memo, task, { ...settings, sign: "helps" })], whole: 1 };
  }

  /** How far from zero, to the side that the sign asks for, a number must be; null: anywhere. */
  cut(memo: Memo, task: TaskScores, settings: Settings): number | null {
    return cut(memo, task, settings);
  }

  /** How many runs of each head reach the threshold, where the view counts runs. */
  reached(_memo: Memo, _task: TaskScores, _settings: Settings): Counts | null {
    return null;
  }

  /** What the number is called that the threshold is compared with. */
  numberName(scores: Scores, settings: Settings): string {
    return meanName(scores, settings);
  }

  /** The least and the largest strength in any task when sign does not matter; zero between. */
  extent(memo: Memo, settings: Settings): readonly [number, number] {
    const [least, most] = this.ends(memo, settings);
    return memo.scores.signed ? [0, Math.max(-least, most)] : [least, most];
  }

  /** The least and the largest number that a threshold is compared with. */
  protected ends(memo: Memo, settings: Settings): readonly [number, number] {
    const maps = () => memo.scores.tasks.map((task) => number(memo, task, settings));
    return memo.once(() => ends(maps()), "ends", settings.reduction, settings.normalize);
  }
}

/** A task whose largest |score| is below this part of where the colours end can hardly be seen. */
const QUIET = 0.15;

/** What the colours of a task's maps span, and whether they can be seen. */
export function scaleFor(
  shared: Range,
  { scale }: Settings,
  own: () => Range,
  largest: () => number,
): Pick<Panel, "range" | "quiet"> {
  if (scale === "own") return { range: own(), quiet: null };
  const most = largest();
  return { range: null, quiet: most > 0 && most < QUIET * shared.high ? most : null };
}

/** The largest |score| of some maps. */
export const largestOf = (maps: readonly ScoreMap[]): number => {
  const [least, most] = ends(maps);
  return Math.max(-least, most);
};

/** Which heads were measured in no run of a task; null: all were in some. */
export const missingIn = (memo: Memo, task: TaskScores): Uint8Array | null =>
  memo.once(() => neverMeasured(task), "missing", task.name);

/** What the runs of a head taken together are called. */
export function meanName(scores: Scores, settings: Settings): string {
  const name = scores.tasks.some((task) => task.runs > 1) ? settings.reduction : "score";
  return settings.normalize ? `share of ${name}` : name;
}
