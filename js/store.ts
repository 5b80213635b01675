// The store of one widget on the page; besides live/lab.ts the only module that touches the model.
//
// `sync` changes what Python knows too (the settings and the selection); `show` changes what only
// this view knows. Listeners are called once a frame with the names of all that changed, so a
// burst of events costs one drawing.

import { fragmentOf } from "./display/link";
import { messageOf } from "./display/message";
import { type LabWords, pythonText } from "./display/python_text";
import { DEFAULTS, type Settings } from "./display/settings";
import { viewOf } from "./display/views";
import type { Picture } from "./display/views/picture";
import { decode, type Header } from "./display/wire";
import { createHistory, type History, type Side, stepName } from "./history";
import type { WidgetModel } from "./model";
import { type Head, headAt } from "./scores/head_scores";
import { Memo } from "./scores/memo";
import type {
  Change,
  Data,
  Draws,
  Keeps,
  Listener,
  Points,
  Reads,
  Shown,
  Shows,
  State,
  Synced,
  Syncs,
  Undoes,
} from "./state";

const SETTINGS = Object.keys(DEFAULTS) as (keyof Settings)[];
const SYNCED: (keyof Synced)[] = [...SETTINGS, "selected"];
const DATA = ["_header", "_buffer"] as const;
const SAVE_AFTER = 80; // ms; a drag reaches Python about twelve times a second

/** What a picture depends on. */
const PICTURE: readonly (keyof State)[] = [...SETTINGS, "scores", "agreeing"];
/** What decides where maps and ticks stand. */
const LAYOUT: readonly (keyof State)[] = [
  ...PICTURE.filter((name) => name !== "threshold"),
  ...(["settled", "width", "ratio"] as const),
];

/** Everything that panels take, for one view of a model. */
export interface Store
  extends Reads<keyof State>,
    Draws,
    Points,
    Syncs<keyof Synced>,
    Shows<keyof Shown>,
    Undoes,
    Keeps {
  /** When this view began, by the page's clock. */
  readonly began: number;
  readonly history: History;
  /** Show what went wrong in the widget itself. */
  fail(error: unknown): void;
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
    inspector: true,
    tab: "scores",
    beside: false,
    docked: false,
    changed: [],
    textScale: 1,
    simple: true,
    live: Boolean(model.get("_live") && model.send),
    tour: false,
    undoable: false,
    redoable: false,
    ...readScores(model),
  };
  const notice = model.get("_notice") as string | undefined; // of a page whose link does not fit
  if (notice) state = { ...state, error: state.error ?? notice };
  const first = readSynced(model);
  let pictured: { of: unknown[]; picture: Picture } | null = null;

  const tell = (): void => {
    const names = new Set(changed);
    changed.clear();
    if (PICTURE.some((name) => names.has(name))) names.add("picture");
    if (LAYOUT.some((name) => names.has(name))) names.add("layout");
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
    const keys = (Object.keys(patch) as (keyof State)[]).filter(
      (key) => !Object.is(state[key], patch[key]),
    );
    if (!keys.length) return;
    state = { ...state, ...patch };
    if (!listeners.size) return; // a later listener reads the state as it is
    if (!changed.size) frame(tell);
    for (const key of keys) changed.add(key);
  };
  const save = (): void => {
    saving = undefined;
    unsaved.clear();
    model.save_changes();
  };

  const history = createHistory((undoable, redoable) => apply({ undoable, redoable }));
  const side: Side = {
    get: (key) => state[key as keyof Synced],
    // Scores may be others by now, without some of the tasks and heads of then.
    put: (values) => {
      const fit = fitting({ ...syncedOf(state), ...(values as Partial<Synced>) }, state.scores);
      store.sync(
        Object.fromEntries(Object.keys(values).map((key) => [key, fit[key as keyof Synced]])),
      );
    },
  };
  const move = (word: string, keys: readonly string[] | null): void =>
    apply({ spoken: keys ? `${word}: ${stepName(keys)}` : `Nothing is left to be ${word}` });

  const store: Store = {
    began,
    history,
    get state() {
      return state;
    },
    picture() {
      if (!state.memo) return null;
      const of = PICTURE.map((name) => state[name]);
      if (!pictured || pictured.of.some((value, i) => !Object.is(value, of[i]))) {
        pictured = { of, picture: viewOf(state).picture(state.memo, state, state.agreeing) };
      }
      return pictured.picture;
    },
    sync(patch) {
      history.note(side, patch);
      apply(patch);
      // Other views of the same widget follow at once through the shared model; the kernel later.
      for (const key of Object.keys(patch) as (keyof Synced)[]) {
        unsaved.add(key);
        model.set(key, patch[key]);
      }
      saving ??= setTimeout(save, SAVE_AFTER);
    },
    show: apply,
    undo: () => move("undone", history.back()),
    redo: () => move("redone", history.forth()),
    reset() {
      history.seal();
      store.sync(fitting(first, state.scores));
      history.seal();
      apply({ spoken: "Settings and selection are as they were at first" });
    },
    python() {
      if (!state.scores) return "";
      const onPage = model.get("_page") !== undefined; // its reader has no variable of ours
      const from = onPage ? 'hw.open("scores.safetensors")' : "scores";
      return pythonText(state, state.scores, labWords(model), from);
    },
    pageParts: () => ({
      script: (model.get("_esm") as string | undefined) ?? null,
      css: (model.get("_css") as string | undefined) ?? null,
      header: model.get("_header"),
      buffer: model.get("_buffer") as DataView<ArrayBuffer>,
      state: syncedOf(state),
      title: (model.get("_title") as string | undefined) ?? null,
    }),
    fragment() {
      const saved = model.get("_page") as Synced | undefined;
      return saved ? fragmentOf(state, saved) : null;
    },
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
      apply({ error: messageOf(error) });
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };

  const answering = new Set<string>();
  const fromModel = (key: keyof Synced) => (): void => {
    if (!unsaved.has(key)) apply({ [key]: readSynced(model)[key] });
    // The kernel echoes what it was sent; in the middle of a drag that would pull the slider back.
    // Two views that both do this would answer each other without an end.
    else if (!answering.has(key) && !Object.is(model.get(key), state[key])) {
      answering.add(key);
      model.set(key, state[key]);
      answering.delete(key);
    }
  };
  let reading = false;
  const newScores = (): void => {
    if (reading) return; // header and buffer arrive together, in two events
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
  const settings = SETTINGS.map((key) => [key, model.get(key) ?? DEFAULTS[key]]);
  return {
    ...(Object.fromEntries(settings) as unknown as Settings),
    selected: (model.get("selected") as Head[] | undefined) ?? [],
  };
}

const syncedOf = (state: State): Synced =>
  Object.fromEntries(SYNCED.map((key) => [key, state[key]])) as unknown as Synced;

/** What a lab is asked for; null for an explorer of finished scores. */
function labWords(model: WidgetModel): LabWords | null {
  if (!model.get("_live")) return null;
  const names = [
    "method",
    "options",
    "asked",
    "prompts",
    "prompt",
    "target",
    "heed_gates",
  ] as const;
  const words = Object.fromEntries(names.map((name) => [name, model.get(name)]));
  const offer = model.get("_offer") as { tasks: [string, number][] };
  const tasks = offer.tasks.map(([name]) => name);
  return { ...words, scaled: model.get("_scaled"), tasks } as unknown as LabWords;
}

/** Settings of earlier scores for those shown now: without tasks and heads that these lack. */
function fitting(synced: Synced, scores: Data["scores"]): Synced {
  if (!scores) return synced;
  const names = scores.tasks.map(({ name }) => name);
  const tasks = synced.tasks.filter((name) => names.includes(name));
  const task = synced.task !== null && names.includes(synced.task) ? synced.task : null;
  const selected = synced.selected.filter(
    ([layer, head]) => scores.layers.includes(layer) && head < scores.heads,
  );
  return { ...synced, tasks: tasks.length || !synced.tasks.length ? tasks : names, task, selected };
}

function readScores(model: WidgetModel): Data & Pick<Shown, "error"> {
  try {
    const scores = decode(model.get("_header") as Header, model.get("_buffer") as DataView);
    return { scores, memo: new Memo(scores), error: null };
  } catch (error) {
    const why = messageOf(error);
    return { scores: null, memo: null, error: `These scores cannot be shown: ${why}` };
  }
}
