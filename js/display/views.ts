// What each view shows, as numbers: panels of (layer, head) values, which heads pass, and the range of colours.
// Twin of headwidget/views.py, which says what strength, cut and agreement mean; tests/golden/views.json holds the two together.

import { either, ends, filled, highest, looked, reaches, sizes } from "../scores/masks";
import {
  type Counts,
  elbow,
  noCounts,
  orderStatistic,
  reaching,
  reduce,
  runsNeeded,
  share,
  whole,
} from "../scores/reduce";
import type { Panel, Picture } from "./picture";
import { place, type Range, rangeOf, sortedScores } from "./scales";
import { DEFAULTS, type Settings, START } from "./settings";
import { lazy, type ScoreMap, type Scores, type TaskScores } from "./wire";

/** The smallest float32 above zero: what a cut of signed scores never falls below. */
const ANY_POSITIVE = 2 ** -149;
const FRACTIONS: Range = { low: 0, high: 1, step: 0.25, lowCapped: false, highCapped: false };
export const ALL = "All Categories";
export const UNCLASSIFIED = "Unclassified";

export interface Views {
  /** With `between` the agreement view has its column between Always and Any also where it is the same as one of them. */
  picture(settings: Settings, between?: boolean): Picture;
  number(task: TaskScores, settings: Settings): ScoreMap;
  strength(task: TaskScores, settings: Settings): ScoreMap;
  passing(task: TaskScores, settings: Settings): Uint8Array | null;
  /** The same as the view shows it: in the agreement view, which heads are on in as many runs as are asked for. */
  passesIn(task: TaskScores, settings: Settings): Uint8Array | null;
  /** The cut of a task on the scale of its numbers; null without a threshold. */
  cut(task: TaskScores, settings: Settings): number | null;
  /** How many runs of each head reach the threshold, at least; null without one. */
  counts(task: TaskScores, settings: Settings): Counts | null;
  /** What `make` makes, made once for these scores and this key. */
  once<T>(make: () => T, ...key: unknown[]): T;
  /** The place of every value among 256 colours; the same for every panel that shows the same values. */
  places(values: Panel["values"], range: Range): Uint8ClampedArray;
  /** The least and the largest strength in any task when sign does not matter; zero lies between. */
  extent(settings: Settings): readonly [number, number];
}

/** The views of some scores. What does not depend on the threshold is worked out once: a drag must answer within a frame. */
export function viewsOf(scores: Scores): Views {
  const known = new Map<string, unknown>();
  const once = <T>(make: () => T, ...key: unknown[]): T => {
    const name = JSON.stringify(key);
    if (!known.has(name)) known.set(name, make());
    return known.get(name) as T;
  };
  const taskNamed = new Map(scores.tasks.map((task) => [task.name, task]));
  const heads = scores.layers.length * scores.heads;
  const plain = (task: TaskScores, { reduction }: Settings): ScoreMap =>
    once(() => reduce(task, reduction), "plain", task.name, reduction);

  const number = (task: TaskScores, settings: Settings): ScoreMap => {
    const found = plain(task, settings);
    return settings.normalize
      ? once(() => share(found), "share", task.name, settings.reduction)
      : found;
  };
  const strength = (task: TaskScores, settings: Settings): ScoreMap => {
    const shares = number(task, settings);
    if (!scores.signed) return shares;
    const { sign, reduction, normalize } = settings;
    return once(
      () => {
        if (sign === "either") return sizes(shares);
        const direction = sign === "helps" ? 1 : -1;
        const raw = plain(task, settings);
        return filled(
          new Float32Array(heads),
          (i) => Math.abs(shares[i]!) * Math.sign(raw[i]!) * direction,
        );
      },
      "strength",
      task.name,
      reduction,
      normalize,
      sign,
    );
  };
  const sorted = (task: TaskScores, settings: Settings): ScoreMap =>
    once(
      () => strength(task, settings).slice().sort().reverse(),
      "sorted",
      task.name,
      settings.reduction,
      settings.normalize,
      settings.sign,
    );
  const elbowOf = (task: TaskScores, settings: Settings): number =>
    once(
      () => elbow(strength(task, settings), scores.signed),
      "elbow",
      task.name,
      settings.reduction,
      settings.normalize,
      settings.sign,
    );

  const placed = new WeakMap<
    Panel["values"],
    { readonly range: Range; readonly places: Uint8ClampedArray }
  >();
  const places = (values: Panel["values"], range: Range): Uint8ClampedArray => {
    const known = placed.get(values);
    if (known?.range === range) return known.places;
    const found = new Uint8ClampedArray(values.length); // it clamps by itself
    const { low, high } = range;
    for (let i = 0; i < found.length; i++)
      found[i] = Math.floor(((values[i]! - low) * 255) / (high - low) + 0.5);
    placed.set(values, { range, places: found });
    return found;
  };
  /** Every task's numbers, hidden ones too, so that no colour changes when a task is hidden. */
  const allSorted = (settings: Settings): ScoreMap =>
    once(
      () => sortedScores(scores.tasks.map((task) => number(task, settings))),
      "all",
      settings.reduction,
      settings.normalize,
    );
  /** The best and the worst run of every head and task. */
  const extremes = (): ScoreMap =>
    once(() => sortedScores(scores.tasks.flatMap(({ least, most }) => [least, most])), "extremes");
  const extent = (settings: Settings): readonly [number, number] => {
    const { view, normalize, reduction } = settings;
    const ofRuns = view === "agreement" && !normalize;
    const maps = (): readonly ArrayLike<number>[] => {
      if (ofRuns) return scores.tasks.flatMap((task) => [task.least, task.most]);
      if (view !== "tasks") return scores.tasks.map((task) => number(task, settings));
      const sorted = allSorted(settings); // which this view's colours need anyway
      return [[sorted[0]!, sorted[sorted.length - 1]!]];
    };
    const [least, most] = once(() => ends(maps()), "extent", ofRuns, reduction, normalize);
    return scores.signed ? [0, Math.max(-least, most)] : [least, most];
  };

  const cut = (task: TaskScores, settings: Settings): number | null => {
    const { threshold, rule } = settings;
    if (threshold === null) return null;
    if (rule === "value") return Math.fround(threshold);
    let found: number;
    if (rule === "elbow") found = Math.fround(threshold * elbowOf(task, settings));
    else {
      const k = kept(rule, threshold, heads);
      if (k === 0) return Number.POSITIVE_INFINITY;
      found = sorted(task, settings)[k - 1]!;
    }
    return scores.signed ? Math.max(found, ANY_POSITIVE) : found;
  };
  /** A mask without the heads that are not scored yet. */
  const scored = (task: TaskScores, mask: Uint8Array): Uint8Array => {
    for (const row of task.unscored ?? [])
      mask.fill(0, row * scores.heads, (row + 1) * scores.heads);
    return mask;
  };
  const passing = (task: TaskScores, settings: Settings): Uint8Array | null => {
    const edge = cut(task, settings);
    return edge === null ? null : scored(task, reaches(strength(task, settings), edge));
  };

  /** The cut on the scale of the runs: top, percent and elbow do not depend on scale, and a share is turned back. */
  const rawCut = (task: TaskScores, settings: Settings): number => {
    const edge = cut(task, { ...settings, normalize: null })!;
    if (settings.normalize === null || settings.rule !== "value") return edge;
    const total = whole(plain(task, settings));
    if (total === 0 && edge > 0) return Number.POSITIVE_INFINITY; // of nothing, every share is zero
    return Math.fround(edge * total);
  };
  const spare = new Map<string, Counts[]>(); // two for each task, by turns: new ones in every frame of a drag keep the collector busy
  const counted = (task: TaskScores, sign: Settings["sign"], edge: number): Counts => {
    const mine = spare.get(task.name) ?? [noCounts(task), noCounts(task)];
    spare.set(task.name, mine.reverse());
    const found = mine[0]!.fill(0);
    if (!scores.signed || sign !== "hurts") reaching(task, edge, 1, found);
    if (scores.signed && sign !== "helps") reaching(task, edge, -1, found);
    return found;
  };
  /** How many runs of each head reach an edge; what follows from that is worked out when it is looked at. */
  interface Reach {
    readonly edge: number;
    readonly sign: string;
    readonly runs: Counts;
    readonly fractions: () => ScoreMap;
    readonly places: () => Uint8ClampedArray;
    /** Which heads reach it in so many runs. */
    readonly passes: (needed: number) => Uint8Array;
  }
  const last = new Map<string, Reach>(); // of each task; it stays while the agreement is dragged
  const reachOf = (task: TaskScores, settings: Settings): Reach | null => {
    if (settings.threshold === null) return null;
    const [edge, { sign }, known] = [rawCut(task, settings), settings, last.get(task.name)];
    if (known?.edge === edge && known.sign === sign) return known;
    const runs = counted(task, sign, edge);
    const table = once(
      () =>
        Uint8Array.from({ length: task.runs + 1 }, (_, n) =>
          place(Math.fround(n / task.runs), FRACTIONS),
        ),
      "table",
      task.runs,
    );
    const masks = new Map<number, Uint8Array>();
    const passes = (needed: number): Uint8Array => {
      const mask = masks.get(needed) ?? scored(task, reaches(runs, needed));
      masks.set(needed, mask);
      return mask;
    };
    const fractions = lazy(() => filled(new Float32Array(heads), (i) => runs[i]! / task.runs));
    const places = lazy(() => looked(table, runs));
    const found = { edge, sign, runs, fractions, places, passes };
    last.set(task.name, found);
    return found;
  };
  const counts = (task: TaskScores, settings: Settings): Counts | null =>
    reachOf(task, settings)?.runs ?? null;

  const passesIn = (task: TaskScores, settings: Settings): Uint8Array | null => {
    if (settings.view === "categories") return passing(task, forCategories(settings));
    if (settings.view === "tasks") return passing(task, settings);
    return reachOf(task, settings)?.passes(runsNeeded(settings.agreement, task.runs)) ?? null;
  };
  const floorOf = (task: TaskScores, settings: Settings): number | null => {
    if (task.floor === null || !settings.normalize) return task.floor;
    const total = whole(plain(task, settings));
    return total > 0 ? task.floor / total : null;
  };
  const tasksView = (settings: Settings): Picture => {
    const panels = shown(scores, settings).map((name) => {
      const task = taskNamed.get(name)!;
      return {
        title: name,
        values: number(task, settings),
        passes: passing(task, settings),
        task: name,
      };
    });
    const signed = scores.signed && settings.normalize === null;
    const { cap, reduction, normalize } = settings;
    return {
      panels,
      range: once(
        () => rangeOf(allSorted(settings), signed, cap),
        "range",
        reduction,
        normalize,
        cap,
      ),
      colours: settings.colormap ?? (signed ? "blue-orange" : "viridis"),
      label: numberName(scores, settings),
      layersOn: settings.orientation ?? "y",
      columns: settings.columns,
      passing: either(panels.map((panel) => panel.passes)),
      legend: [],
      floor: highest(panels.map(({ task }) => floorOf(taskNamed.get(task)!, settings))),
      slots: null,
    };
  };

  const agreementView = (settings: Settings, between: boolean): Picture => {
    const flip = scores.signed && settings.sign === "hurts";
    const panels: Panel[] = [];
    const rows: number[] = []; // how many panels each task has
    const on: (() => Uint8Array | null)[] = [];
    let columns = 2;
    for (const name of shown(scores, settings)) {
      const task = taskNamed.get(name)!;
      const reach = lazy(() => reachOf(task, settings)); // maps out of sight wait for the second frame
      const across = agreements(settings.agreement, task.runs, between);
      columns = Math.max(columns, across.length);
      rows.push(across.length);
      for (const [title, agreement] of across) {
        const needed = runsNeeded(agreement, task.runs);
        const passes = (): Uint8Array | null => reach()?.passes(needed) ?? null;
        panels.push({
          title: `${name} (${title})`,
          get values() {
            return reach()?.fractions() ?? orderStatistic(task, agreement, flip ? -1 : 1);
          },
          get places() {
            return reach()?.places() ?? null;
          },
          get passes() {
            return passes();
          },
          task: name,
        });
        if (needed === runsNeeded(settings.agreement, task.runs)) on.push(passes);
      }
    }
    const fractions = settings.threshold !== null;
    const passing = lazy(() => either(on.map((passes) => passes())));
    return {
      panels,
      range: fractions
        ? FRACTIONS
        : once(() => rangeOf(extremes(), scores.signed, settings.cap), "ends", settings.cap),
      colours: settings.colormap ?? (scores.signed && !fractions ? "blue-orange" : "turbo"),
      label: fractions ? "fraction of runs" : "score",
      layersOn: settings.orientation ?? "y",
      columns,
      get passing() {
        return passing();
      },
      legend: [],
      floor: null,
      // A task of few runs may have no column between: its Any stands under the others' Any.
      slots: rows.flatMap((count, row) =>
        Array.from({ length: count }, (_, i) => [row, i === count - 1 ? columns - 1 : i] as const),
      ),
    };
  };

  const categoriesView = (settings: Settings): Picture => {
    const at = forCategories(settings);
    const groups = categoriesOf(scores);
    const count = new Uint16Array(heads);
    const classes = new Uint16Array(heads);
    const members: [string, number, Uint8Array][] = [];
    [...groups].forEach(([category, names], i) => {
      const masks = names
        .filter((n) => settings.tasks.includes(n))
        .map((n) => passing(taskNamed.get(n)!, at));
      const mask = either(masks);
      if (!mask) return;
      members.push([category, i + 1, mask]); // a hidden category keeps its colour
      for (let cell = 0; cell < heads; cell++) {
        if (!mask[cell]) continue;
        count[cell]!++;
        classes[cell] = count[cell] === 1 ? i + 1 : groups.size + count[cell]! - 1;
      }
    });
    const names = [UNCLASSIFIED, ...groups.keys()];
    for (let n = 2; n <= groups.size; n++) names.push(`${n} categories`);
    const counts = new Array<number>(names.length).fill(0);
    for (let cell = 0; cell < heads; cell++) counts[classes[cell]!]!++;
    const alone = settings.isolated === null ? -1 : names.indexOf(settings.isolated);
    const keep =
      alone < 0 ? null : filled(new Uint8Array(heads), (i) => Number(classes[i] === alone));
    return {
      panels: [
        { title: ALL, values: classes, passes: keep, task: null },
        ...members.map(([title, place, mask]) => {
          const values = lazy(() => filled(new Uint16Array(heads), (i) => mask[i]! * place));
          return {
            title,
            get values() {
              return values();
            },
            passes: keep?.map((one, i) => one & mask[i]!) ?? null,
            task: null,
          };
        }),
      ],
      range: { low: 0, high: names.length - 1, step: 1, lowCapped: false, highCapped: false },
      colours: "categories",
      label: "categories",
      layersOn: settings.orientation ?? "x",
      columns: settings.columns,
      passing: reaches(count, 1),
      legend: names.map((name, i) => ({ name, count: counts[i]! })),
      floor: null,
      slots: null,
    };
  };
  const views = { tasks: tasksView, agreement: agreementView, categories: categoriesView };
  return {
    picture: (settings, between = false) => views[settings.view](settings, between),
    number,
    strength,
    passing,
    passesIn,
    cut,
    counts,
    once,
    places,
    extent,
  };
}

/** The tasks that are drawn, in order: one alone when `task` names it. */
export function shown(scores: Scores, settings: Settings): string[] {
  const has = (name: string): boolean => scores.tasks.some((task) => task.name === name);
  if (settings.task !== null && has(settings.task)) return [settings.task];
  return settings.tasks.filter(has);
}

/** The tasks a view is about, in order; the categories view knows no task alone. */
export function shownTasks(state: Settings & { readonly scores: Scores | null }): TaskScores[] {
  const { scores } = state;
  if (!scores) return [];
  const names = shown(scores, state.view === "categories" ? { ...state, task: null } : state);
  return names.map((name) => scores.tasks.find((task) => task.name === name)!);
}

/** How many heads "top" or "percent" keep. */
export function kept(rule: "top" | "percent", threshold: number, heads: number): number {
  const k = rule === "top" ? Math.floor(threshold) : Math.ceil((threshold / 100) * heads - 1e-9);
  return Math.min(Math.max(k, 0), heads);
}

/** Without a threshold, heads are classified at each task's elbow. */
export function forCategories(settings: Settings): Settings {
  return settings.threshold === null
    ? { ...settings, rule: "elbow", threshold: START.elbow }
    : settings;
}

/** What a cell's number is called. */
export function numberName(scores: Scores, settings: Settings = DEFAULTS): string {
  const name = scores.tasks.some((task) => task.runs > 1) ? settings.reduction : "score";
  return settings.normalize ? `share of ${name}` : name;
}

/** Always and Any, and between them the agreement asked for when it is neither, or when it is `held`. */
export function agreements(agreement: number, runs: number, held = false): [string, number][] {
  const needed = runsNeeded(agreement, runs);
  const same = needed === 1 || needed === runs;
  const between: [string, number][] =
    same && !(held && runs > 2) ? [] : [[`≥ ${needed} of ${runs}`, agreement]];
  return [["Always", 1], ...between, ["Any", 0]];
}

/** Each category and its tasks, in the order of the tasks; a task that has no category is one of its own. */
export function categoriesOf(scores: Scores): Map<string, string[]> {
  const groups = new Map<string, string[]>();
  for (const { name, category } of scores.tasks) {
    const key = category ?? name;
    groups.set(key, [...(groups.get(key) ?? []), name]);
  }
  return groups;
}
