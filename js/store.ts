// The state of one view, and the only module that touches the widget model.
//
// `sync` changes what Python knows too (selected, threshold, tasks, view); `show` changes what only this view knows.
// Listeners are called once a frame with the names of all that changed, so a burst of events costs one drawing.

import { arrange, type Layout } from "./layout";
import type { WidgetModel } from "./model";
import { reaches, sizes } from "./reduce";
import { colourRange, type Range, type Scheme, type Slider, sliderRange } from "./scales";
import { decode, type Header, type Scores, type TaskScores } from "./wire";

/** [layer, head], by the model's own layer number, as in Python. */
export type Head = readonly [number, number];
/** A place in the grid: row from the top, head from the left. */
export interface Cell {
  readonly row: number;
  readonly head: number;
}

export interface Synced {
  readonly selected: readonly Head[];
  readonly threshold: number | null;
  readonly tasks: readonly string[];
  readonly view: string;
}

export interface Shown {
  /** The head under the pointer or the keyboard's cursor, and where on the screen its card goes. */
  readonly hover: (Cell & { readonly x: number; readonly y: number }) | null;
  /** Where the keyboard goes on from: the head that was last pointed at. */
  readonly cursor: Cell;
  readonly width: number;
  readonly ratio: number;
  readonly scheme: Scheme;
  readonly error: string | null;
}

/** What Python sent, decoded, and what follows from it alone: the range of colours and of the threshold. */
export interface Data {
  readonly scores: Scores | null;
  readonly range: Range;
  readonly slider: Slider;
}

export type State = Synced & Shown & Data;
export type Change = keyof State;
export type Listener = (changed: ReadonlySet<Change>) => void;
export type Panel = (el: HTMLElement, store: Store) => () => void;

const SYNCED = ["selected", "threshold", "tasks", "view"] as const;
const DATA = ["_header", "_buffer"] as const;
const SAVE_AFTER = 80; // ms; a drag reaches Python about twelve times a second

export interface Store {
  readonly state: State;
  sync(patch: Partial<Synced>): void;
  show(patch: Partial<Shown>): void;
  /** Show what went wrong in the widget itself. */
  fail(error: unknown): void;
  subscribe(listener: Listener): () => void;
}

type Frame = (callback: () => void) => unknown;

/** A store on `model` that lives until `signal` aborts. */
export function createStore(
  model: WidgetModel,
  signal: AbortSignal,
  frame: Frame = (callback) => requestAnimationFrame(callback),
): Store {
  const listeners = new Set<Listener>();
  const changed = new Set<Change>();
  const unsaved = new Set<keyof Synced>(); // what Python has not been told yet
  let saving: ReturnType<typeof setTimeout> | undefined;
  let state: State = {
    ...readSynced(model),
    hover: null,
    cursor: { row: 0, head: 0 },
    width: 0,
    ratio: 1,
    scheme: "light",
    ...readScores(model),
  };

  const tell = (): void => {
    const names = new Set(changed);
    changed.clear();
    if (signal.aborted) return;
    for (const listener of [...listeners]) {
      try {
        if (listeners.has(listener)) listener(names);
      } catch (error) {
        store.fail(error);
      }
    }
  };
  const apply = (patch: Partial<State>): void => {
    const keys = (Object.keys(patch) as Change[]).filter((key) => !Object.is(state[key], patch[key]));
    if (!keys.length) return;
    state = { ...state, ...patch };
    if (!changed.size) frame(tell);
    for (const key of keys) changed.add(key);
  };
  const save = (): void => {
    saving = undefined;
    unsaved.clear();
    model.save_changes();
  };

  const store: Store = {
    get state() {
      return state;
    },
    sync(patch) {
      apply(patch);
      // Other views of the same widget follow at once through the shared model; the kernel hears of it in a while.
      for (const key of Object.keys(patch) as (keyof Synced)[]) {
        unsaved.add(key);
        model.set(key, patch[key]);
      }
      saving ??= setTimeout(save, SAVE_AFTER);
    },
    show: apply,
    fail(error) {
      console.error(error);
      apply({ error: error instanceof Error ? error.message : String(error) });
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };

  const fromModel = (key: keyof Synced) => (): void => {
    if (!unsaved.has(key)) apply({ [key]: readSynced(model)[key] });
    // The kernel echoes what it was sent a moment ago; in the middle of a drag that would pull the slider back.
    else if (!Object.is(model.get(key), state[key])) model.set(key, state[key]);
  };
  let reading = false;
  const newScores = (): void => {
    if (reading) return; // header and buffer arrive together but are told of one by one
    reading = true;
    queueMicrotask(() => {
      reading = false;
      if (!signal.aborted) apply({ hover: null, cursor: { row: 0, head: 0 }, ...readScores(model) });
    });
  };
  const wires = [
    ...SYNCED.map((key) => [key, fromModel(key)] as const),
    ...DATA.map((key) => [key, newScores] as const),
  ];
  for (const [key, callback] of wires) model.on(`change:${key}`, callback);
  signal.addEventListener("abort", () => {
    for (const [key, callback] of wires) model.off(`change:${key}`, callback);
    listeners.clear();
    if (saving !== undefined) {
      clearTimeout(saving);
      save();
    }
  });
  return store;
}

function readSynced(model: WidgetModel): Synced {
  return {
    selected: (model.get("selected") as Head[] | undefined) ?? [],
    threshold: (model.get("threshold") as number | null | undefined) ?? null,
    tasks: (model.get("tasks") as string[] | undefined) ?? [],
    view: (model.get("view") as string | undefined) ?? "tasks",
  };
}

const NO_RANGE: Range = { low: 0, high: 1, step: 1, lowCapped: false, highCapped: false };

function readScores(model: WidgetModel): Data & Pick<Shown, "error"> {
  try {
    const scores = decode(model.get("_header") as Header, model.get("_buffer") as DataView);
    return { scores, range: colourRange(scores), slider: sliderRange(scores), error: null };
  } catch (error) {
    const why = error instanceof Error ? error.message : error;
    return { scores: null, range: NO_RANGE, slider: NO_RANGE, error: `These scores cannot be shown: ${why}` };
  }
}

// ---- what follows from the state ----

/** The tasks that are shown, in order. */
export function shownTasks(state: State): TaskScores[] {
  const all = state.scores?.tasks ?? [];
  return state.tasks.flatMap((name) => all.find((task) => task.name === name) ?? []);
}

/** Which heads of a task pass the threshold: by mean, or by its size when scores are signed. Null: no threshold. */
export function passing(state: State, task: TaskScores): Uint8Array | null {
  if (state.threshold === null || !state.scores) return null;
  return reaches(state.scores.signed ? sizes(task.mean) : task.mean, state.threshold);
}

/** What a cell's number is called. */
export const numberName = (scores: Scores): string => (scores.tasks.some((task) => task.runs > 1) ? "mean" : "score");

export function layoutOf(state: State): Layout {
  const { layers = [], heads = 1 } = state.scores ?? {};
  return arrange(state.width, state.ratio, Math.max(1, layers.length), heads, state.tasks.length);
}

/** "L12 H3" */
export const headName = ([layer, head]: Head): string => `L${layer} H${head}`;

/** The head at a cell, as Python names it. */
export const headAt = (scores: Scores, cell: Cell): Head => [scores.layers[cell.row]!, cell.head];

/** What a click on a head does: alone it takes the place of the selection (or ends it), with `add` it joins or leaves. */
export function toggled(selected: readonly Head[], [layer, head]: Head, add: boolean): Head[] {
  const others = selected.filter(([l, h]) => l !== layer || h !== head);
  const was = others.length < selected.length;
  if (add) return was ? [...others] : [...others, [layer, head]];
  return was && selected.length === 1 ? [] : [[layer, head]];
}
