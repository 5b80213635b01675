// The state of one view, and the only module that touches the widget model.
//
// `sync` changes what Python knows too (the settings and the selection); `show` changes what only this view knows.
// Listeners are called once a frame with the names of all that changed, so a burst of events costs one drawing.

import type { Scheme } from "./display/palette";
import type { Picture } from "./display/picture";
import { DEFAULTS, type Settings } from "./display/settings";
import { type Views, viewsOf } from "./display/views";
import { decode, type Header, type Scores } from "./display/wire";
import type { WidgetModel } from "./model";

/** [layer, head], by the model's own layer number, as in Python. */
export type Head = readonly [number, number];
/** A place in the grid: the layer's row, and the head. */
export interface Cell {
  readonly row: number;
  readonly head: number;
}
/** The head that is pointed at, and where on the screen its card goes; without a place it was pointed at elsewhere. */
export interface Pointed extends Cell {
  readonly place?: { readonly x: number; readonly y: number };
}

export interface Synced extends Settings {
  readonly selected: readonly Head[];
}

export interface Shown {
  readonly point: Pointed | null;
  /** Where the keyboard goes on from: the head that was last pointed at. */
  readonly cursor: Cell;
  /** Two corners of the box that is being drawn. */
  readonly box: readonly [Cell, Cell] | null;
  readonly width: number;
  readonly ratio: number;
  readonly scheme: Scheme;
  readonly error: string | null;
  /** Is the list of keys open? */
  readonly help: boolean;
  /** What is read aloud: what a key did. */
  readonly spoken: string;
  /** Was the first frame painted? Until then only what it needs is worked out: controls, and as many maps as there is time for. */
  readonly settled: boolean;
  /** Is the agreement slider held? Until it is let go no column of maps comes or goes. */
  readonly agreeing: boolean;
}

/** What Python sent, decoded, and the views of it. */
export interface Data {
  readonly scores: Scores | null;
  readonly views: Views | null;
}

export type State = Synced & Shown & Data;
export type Change = keyof State;
export type Listener = (changed: ReadonlySet<Change>) => void;
export type Panel = (el: HTMLElement, store: Store) => () => void;

export const SETTINGS = Object.keys(DEFAULTS) as (keyof Settings)[];
const SYNCED: (keyof Synced)[] = [...SETTINGS, "selected"];
const DATA = ["_header", "_buffer"] as const;
const SAVE_AFTER = 80; // ms; a drag reaches Python about twelve times a second

/** What a picture depends on. */
export const PICTURE: readonly Change[] = [...SETTINGS, "scores", "agreeing"];

export interface Store {
  /** When this view began, by the page's clock. */
  readonly began: number;
  readonly state: State;
  /** What the view shows now; null without scores. */
  picture(): Picture | null;
  sync(patch: Partial<Synced>): void;
  show(patch: Partial<Shown>): void;
  /** Point at a head: every map and every view of this widget shows it; Python hears of it only when it listens. */
  point(point: Pointed | null): void;
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
  const began = performance.now();
  const listeners = new Set<Listener>();
  const changed = new Set<Change>();
  const unsaved = new Set<string>(); // what Python has not been told yet
  let saving: ReturnType<typeof setTimeout> | undefined;
  let state: State = {
    ...readSynced(model),
    point: null,
    cursor: { row: 0, head: 0 },
    box: null,
    width: 0,
    ratio: 1,
    scheme: "light",
    help: false,
    spoken: "",
    settled: false,
    agreeing: false,
    ...readScores(model),
  };
  let pictured: { of: unknown[]; picture: Picture } | null = null;

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
    const keys = (Object.keys(patch) as Change[]).filter(
      (key) => !Object.is(state[key], patch[key]),
    );
    if (!keys.length) return;
    state = { ...state, ...patch };
    if (!listeners.size) return; // who comes later reads the state as it is
    if (!changed.size) frame(tell);
    for (const key of keys) changed.add(key);
  };
  const save = (): void => {
    saving = undefined;
    unsaved.clear();
    model.save_changes();
  };

  const store: Store = {
    began,
    get state() {
      return state;
    },
    picture() {
      if (!state.views) return null;
      const of = PICTURE.map((name) => state[name]);
      if (!pictured || pictured.of.some((value, i) => !Object.is(value, of[i]))) {
        pictured = { of, picture: state.views.picture(state, state.agreeing) };
      }
      return pictured.picture;
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
    point(point) {
      apply(point ? { point, cursor: { row: point.row, head: point.head } } : { point: null });
      const { scores } = state;
      const head = point && scores ? headAt(scores, point) : null;
      if (sameHead(model.get("hover") as Head | null, head)) return;
      model.set("hover", head);
      if (!model.get("_hover_heard")) return;
      unsaved.add("hover");
      saving ??= setTimeout(save, SAVE_AFTER);
    },
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
      if (signal.aborted) return;
      const [before, now] = [state.scores, readScores(model)];
      // A live run sends the same heads again and again: what is pointed at stays.
      const same =
        before?.heads === now.scores?.heads && before?.layers.join() === now.scores?.layers.join();
      apply({ ...(same ? {} : { point: null, cursor: { row: 0, head: 0 }, box: null }), ...now });
    });
  };
  const newHover = (): void => {
    const { scores, point } = state;
    const head = (model.get("hover") as Head | null | undefined) ?? null;
    if (!scores || sameHead(point && headAt(scores, point), head)) return;
    const row = head ? scores.layers.indexOf(head[0]) : -1;
    apply({ point: head && row >= 0 && head[1] < scores.heads ? { row, head: head[1] } : null });
  };
  const wires = [
    ...SYNCED.map((key) => [key, fromModel(key)] as const),
    ...DATA.map((key) => [key, newScores] as const),
    ["hover", newHover] as const,
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

const sameHead = (a: Head | null | undefined, b: Head | null): boolean =>
  a && b ? a[0] === b[0] && a[1] === b[1] : !a && !b;

function readSynced(model: WidgetModel): Synced {
  const found = Object.fromEntries(SETTINGS.map((key) => [key, model.get(key) ?? DEFAULTS[key]]));
  return {
    ...(found as unknown as Settings),
    selected: (model.get("selected") as Head[] | undefined) ?? [],
  };
}

function readScores(model: WidgetModel): Data & Pick<Shown, "error"> {
  try {
    const scores = decode(model.get("_header") as Header, model.get("_buffer") as DataView);
    return { scores, views: viewsOf(scores), error: null };
  } catch (error) {
    const why = error instanceof Error ? error.message : error;
    return { scores: null, views: null, error: `These scores cannot be shown: ${why}` };
  }
}

/** "L12 H3" */
export const headName = ([layer, head]: Head): string => `L${layer} H${head}`;

/** The head at a cell, as Python names it. */
export const headAt = (scores: Scores, cell: Cell): Head => [scores.layers[cell.row]!, cell.head];
