// The agreement view: a task's maps side by side, what a head reaches Always and in Any run. Twin
// of headwidget/display/views/agreement.py.
//
// Between Always and Any stands the agreement asked for. Without a threshold the colour is that
// order statistic; with one it is the fraction of runs that reach it.

import type { ScoreMap, Scores, TaskScores } from "../../scores/head_scores";
import { either, ends, filled, lookUp, reaches } from "../../scores/masks";
import { lazy, type Memo } from "../../scores/memo";
import { byCount, measuredAt } from "../../scores/missing";
import {
  type Counts,
  noCounts,
  orderStatistic,
  reaching,
  runsNeeded,
  spreadRanks,
} from "../../scores/reduce";
import { runCut, wholeOf } from "../../scores/threshold";
import { place, places, type Range, rangeOf, SIXES, sortedScores } from "../scales";
import type { Settings } from "../settings";
import type { Panel, Picture } from "./picture";
import { type Compared, largestOf, meanName, missingIn, scaleFor, View } from "./view";

/** Order statistics of a head that stand for all its runs where their distribution is drawn. */
const SAMPLED = 9;
const FRACTIONS: Range = { low: 0, high: 1, step: 0.25, lowCapped: false, highCapped: false };

export class Agreement extends View {
  readonly name = "agreement";
  readonly title = "Agreement";
  readonly about = "How many runs agree: always, any, and between";
  readonly uses: ReadonlySet<keyof Settings> = new Set([
    ...(["tasks", "task", "threshold", "rule", "agreement", "sign", "reduction"] as const),
    ...(["normalize", "colormap", "scale", "cap", "orientation", "columns"] as const),
  ]);
  override readonly showsNumber = false;
  override readonly counted =
    "Heads that reach the threshold in as many runs as the agreement asks for, " +
    "in one task shown or more";

  /** With `held` there is a column between Always and Any also where it equals one of them. */
  picture(memo: Memo, settings: Settings, held = false): Picture {
    const shown = this.tasks(memo, settings);
    const fractions = settings.threshold !== null;
    const { signed } = memo.scores;
    const range = fractions
      ? FRACTIONS
      : memo.once(
          () => rangeOf(extremes(memo), signed, settings.cap),
          ...["range of runs", settings.cap],
        );
    const rows = shown.map((task) => rowOf(memo, task, settings, range, held));
    const span = Math.max(2, ...rows.map((row) => row.length));
    // Worked out when it is looked at: maps out of sight wait for the second frame.
    const passing = lazy(() => either(shown.map((task) => this.passes(memo, task, settings))));
    return {
      panels: rows.flat(),
      range,
      colours: settings.colormap ?? (signed && !fractions ? "blue-orange" : "turbo"),
      label: fractions ? "fraction of runs" : "score",
      layersOn: settings.orientation ?? "y",
      columns: settings.columns,
      span,
      get passing() {
        return passing();
      },
      legend: [],
      cuts: [],
      floor: null,
      signed: signed && !fractions,
      slots: slotsOf(rows, span),
      layerTicks: SIXES,
      countWord: "on",
      opens: settings.task === null && shown.length > 1,
    };
  }

  override passes(memo: Memo, task: TaskScores, settings: Settings): Uint8Array | null {
    return reachOf(memo, task, settings)?.passes(settings.agreement) ?? null;
  }

  override reached(memo: Memo, task: TaskScores, settings: Settings): Counts | null {
    return reachOf(memo, task, settings)?.runs ?? null;
  }

  /** The runs, not their mean: of many, order statistics from the least to the largest. */
  override compared(memo: Memo, task: TaskScores, settings: Settings): Compared {
    const { length } = task.ranks;
    const places = spreadRanks(length, Math.min(length, SAMPLED));
    return { maps: places.map((place) => task.order(place)), whole: scaleOf(memo, task, settings) };
  }

  override cut(memo: Memo, task: TaskScores, settings: Settings): number | null {
    if (settings.threshold === null) return null;
    return runCut(memo, task, settings) / scaleOf(memo, task, settings);
  }

  override numberName(scores: Scores, settings: Settings): string {
    return settings.normalize ? meanName(scores, settings) : "score";
  }

  protected override ends(memo: Memo, settings: Settings): readonly [number, number] {
    if (settings.normalize) return super.ends(memo, settings);
    const maps = () => memo.scores.tasks.flatMap(({ least, most }) => [least, most]);
    return memo.once(() => ends(maps()), "ends of runs");
  }
}

/** What a run is divided by to be on the threshold's scale. */
const scaleOf = (memo: Memo, task: TaskScores, settings: Settings): number =>
  settings.normalize ? wholeOf(memo, task, settings) || 1 : 1;

/** The panels of a task, from Always to Any. */
function rowOf(
  memo: Memo,
  task: TaskScores,
  settings: Settings,
  shared: Range,
  held: boolean,
): Panel[] {
  const scale = settings.threshold === null ? scaleOfTask(memo, task, settings, shared) : {};
  const direction = memo.scores.signed && settings.sign === "hurts" ? -1 : 1;
  const reach = lazy(() => reachOf(memo, task, settings));
  return agreements(settings.agreement, task.runs, held).map(([title, agreement]) => {
    return {
      title: `${task.name} (${title})`,
      get values() {
        return reach()?.fractions() ?? orderStatistic(task, agreement, direction);
      },
      get places() {
        return reach()?.places() ?? null;
      },
      get passes() {
        return reach()?.passes(agreement) ?? null;
      },
      missing: missingIn(memo, task),
      task: task.name,
      ...scale,
    };
  });
}

/** All maps of a task are on one scale, from its worst run to its best. */
function scaleOfTask(memo: Memo, task: TaskScores, settings: Settings, shared: Range) {
  const maps = [task.least, task.most];
  const { signed } = memo.scores;
  const { cap } = settings;
  return scaleFor(
    shared,
    settings,
    () => memo.once(() => rangeOf(sortedScores(maps), signed, cap), "own of runs", cap, task.name),
    () => memo.once(() => largestOf(maps), "largest of runs", task.name),
  );
}

/**
 * The task and the place in it of every panel. A task of few runs may have no map between: its
 * Any stands where the others have theirs.
 */
function slotsOf(tasks: readonly Panel[][], span: number): [number, number][] {
  return tasks.flatMap((panels, task) =>
    panels.map((_, i): [number, number] => [task, i === panels.length - 1 ? span - 1 : i]),
  );
}

/** Always and Any, and between them the agreement asked for when it is neither, or is `held`. */
export function agreements(agreement: number, runs: number, held = false): [string, number][] {
  const needed = runsNeeded(agreement, runs);
  const same = needed === 1 || needed === runs;
  const between: [string, number][] =
    same && !(held && runs > 2) ? [] : [[`≥ ${needed} of ${runs}`, agreement]];
  return [["Always", 1], ...between, ["Any", 0]];
}

/** The best and the worst run of every head and task, sorted. */
const extremes = (memo: Memo): ScoreMap =>
  memo.once(
    () => sortedScores(memo.scores.tasks.flatMap(({ least, most }) => [least, most])),
    "extremes",
  );

/** How many runs of each head reach the threshold, and what follows from it when looked at. */
interface Reach {
  readonly runs: Counts;
  readonly fractions: () => ScoreMap;
  readonly places: () => Uint8ClampedArray;
  /** Which heads reach it in as many of their runs as an agreement asks for. */
  readonly passes: (agreement: number) => Uint8Array;
}

/** The reach of a task, which stays while the agreement is dragged; null without a threshold. */
function reachOf(memo: Memo, task: TaskScores, settings: Settings): Reach | null {
  if (settings.threshold === null) return null;
  const { sign } = settings;
  const edge = runCut(memo, task, settings);
  return memo.latest(task, [edge, sign], () => newReach(memo, task, edge, sign));
}

function newReach(memo: Memo, task: TaskScores, edge: number, sign: Settings["sign"]): Reach {
  const runs = countRuns(memo, task, edge, sign);
  const table = memo.once(() => fractionPlaces(task.runs), "fraction places", task.runs);
  const masks = new Map<number, Uint8Array>(); // by how many of all runs are needed
  const fractions = lazy(() =>
    filled(new Float32Array(memo.cells), (i) => runs[i]! / measuredAt(task, i)),
  );
  return {
    runs,
    fractions,
    places: lazy(() => (task.measured ? places(fractions(), FRACTIONS) : lookUp(table, runs))),
    passes(agreement) {
      const needed = runsNeeded(agreement, task.runs);
      const mask = masks.get(needed) ?? enough(task, runs, agreement);
      masks.set(needed, mask);
      return mask;
    },
  };
}

/** 1 where a head reaches the threshold in enough of the runs in which it was measured. */
function enough(task: TaskScores, runs: Counts, agreement: number): Uint8Array {
  if (!task.measured) return reaches(runs, runsNeeded(agreement, task.runs));
  const needed = byCount(task.measured, (count) =>
    count ? runsNeeded(agreement, count) : Number.POSITIVE_INFINITY,
  );
  return filled(new Uint8Array(runs.length), (i) => Number(runs[i]! >= needed(i)));
}

/** How many runs of each head reach an edge; of either sign, in the direction that more do. */
function countRuns(memo: Memo, task: TaskScores, edge: number, sign: Settings["sign"]): Counts {
  // Two buffers a task, by turns: new ones in every frame of a drag keep the collector busy.
  const spare = memo.once(() => [noCounts(task), noCounts(task)], "spare counts", task.name);
  const counts = spare.reverse()[0]!.fill(0);
  const { signed } = memo.scores;
  if (!signed || sign !== "hurts") reaching(task, edge, 1, counts);
  if (signed && sign !== "helps") reaching(task, edge, -1, counts);
  return counts;
}

/** The colour's place of n of so many runs, for every n. */
const fractionPlaces = (runs: number): Uint8Array =>
  Uint8Array.from({ length: runs + 1 }, (_, n) => place(Math.fround(n / runs), FRACTIONS));
