// What only a live explorer has: the run, the prompt, the head that is looked at and the heads
// that are scaled. Besides the store the only module that touches the widget model.

import type { History, Side } from "../history";
import type { WidgetModel } from "../model";
import type { Head } from "../scores/head_scores";
import { type KernelState, watchKernel } from "./kernel";

export interface Option {
  readonly name: string;
  /** What it does, in a few words. */
  readonly label: string;
  readonly kind: "bool" | "int" | "float" | "choice";
  readonly default: boolean | number | string | null;
  readonly choices?: readonly string[];
  /** What an empty field stands for, where the default is no number. */
  readonly hint: string;
  /** One sentence; empty where the method has none. */
  readonly help: string;
}
export interface Offer {
  readonly methods: readonly {
    readonly name: string;
    /** What it does, in one line. */
    readonly about: string;
    readonly why_not: string | null;
    readonly options: readonly Option[];
  }[];
  /** Name, how many prompts. */
  readonly tasks: readonly (readonly [string, number])[];
}
export interface RunState {
  readonly state: "idle" | "running" | "stopping" | "done" | "stopped" | "failed";
  readonly what?: string;
  readonly done?: number;
  readonly total?: number;
  readonly unit?: string;
  /** How well a fit goes: its loss. */
  readonly detail?: string;
  readonly method?: string;
  readonly seconds?: number;
  readonly left?: number | null;
  readonly kept?: number;
  readonly message?: string | null;
  readonly halved?: number | null;
  /** When the run ended that is shown again. */
  readonly again?: string;
}
/** A run that can be shown again. */
export interface PastRun {
  readonly method: string;
  readonly tasks: readonly string[];
  /** Of each task at most. */
  readonly prompts: number;
  readonly partial: boolean;
  /** How many heads were off or scaled while it ran; null where the run did not heed that. */
  readonly heads: number | null;
  /** The options that are not the usual ones, in words. */
  readonly options?: string | null;
  /** When it ended, by the kernel's clock. */
  readonly at: string;
  readonly shown: boolean;
}
/** Id, text, probability, and that with heads scaled, where some are. */
export type Prediction = readonly [number, string, number, number | null];
export interface Reading {
  readonly text?: string;
  readonly tokens?: readonly string[];
  readonly predictions?: readonly Prediction[];
  /** Tokens that are among the likeliest only with heads scaled. */
  readonly risen?: readonly Prediction[];
  readonly why_not?: string | null;
  readonly error?: string;
  readonly ms?: number;
}
export interface HeadReading {
  readonly head?: Head;
  readonly pattern?: readonly (readonly number[])[] | null;
  readonly tokens?: readonly string[];
  readonly promoted?: readonly (readonly [string, number])[];
  readonly suppressed?: readonly (readonly [string, number])[];
  readonly salient?: readonly (readonly [string, number, string])[];
  readonly ranks?: readonly {
    readonly method: string;
    readonly task: string;
    readonly rank: number;
    readonly of: number;
    readonly value: number;
    readonly signed: boolean;
    readonly ranked_by: "mean" | "size";
    readonly partial: boolean;
  }[];
  readonly why_not?: string | null;
  readonly salient_why_not?: string;
  readonly error?: string;
}
export interface Measured {
  readonly log_probability: number;
  readonly accuracy: number;
}
export interface Effect {
  readonly heads?: number;
  readonly done?: boolean;
  readonly error?: string;
  readonly text?: {
    readonly prompt: string;
    readonly before: string;
    readonly after: string;
  } | null;
  /** How many of a control's heads are among those scaled: a layer has no others. */
  readonly shared?: number;
  /** How many tasks are measured. */
  readonly of?: number;
  readonly tasks?: readonly {
    readonly name: string;
    readonly prompts: number;
    /** How many of them no run has scored. */
    readonly unseen: number;
    readonly before: Measured;
    readonly after: Measured;
    readonly controls: readonly Measured[];
  }[];
}
export interface LabState {
  readonly method: string;
  readonly options: Readonly<Record<string, unknown>>;
  readonly asked: readonly string[];
  readonly prompts: number | null;
  readonly prompt: string;
  readonly target: number | null;
  /** Does the next run score the model with the heads changed as they are? */
  readonly heed_gates: boolean;
  /** Layer, head, factor. */
  readonly _scaled: readonly (readonly [number, number, number])[];
  readonly _offer: Offer;
  readonly _state: RunState;
  /** What went wrong beside the run. */
  readonly _trouble: string;
  readonly _reading: Reading;
  readonly _maps: DataView | null;
  readonly _head: HeadReading;
  readonly _effect: Effect;
  /** The last runs, the newest first. */
  readonly _past: readonly PastRun[];
  /** Known to this page only. */
  readonly kernel: KernelState;
}
type Key = keyof LabState;
/** What the page may set; the kernel takes no other trait from it. */
const FROM_PAGE = [
  "method",
  "options",
  "asked",
  "prompts",
  "prompt",
  "target",
  "heed_gates",
  "_scaled",
] as const;
const FROM_KERNEL = [
  "_offer",
  "_state",
  "_trouble",
  "_reading",
  "_maps",
  "_head",
  "_effect",
  "_past",
] as const;
const QUIET = 3000; // ms of a run without a message after which the kernel is asked for one
const KEYS: readonly Exclude<Key, "kernel">[] = [...FROM_PAGE, ...FROM_KERNEL];

export interface Lab {
  readonly state: LabState;
  set(patch: Partial<Pick<LabState, (typeof FROM_PAGE)[number]>>): void;
  ask(what: "run" | "stop" | "measure" | "painted" | "shown" | "hidden"): void;
  /** Show a run of `_past` again. */
  showAgain(index: number): void;
  subscribe(listener: (changed: ReadonlySet<Key>) => void): () => void;
}

/** The live part of a model, or null for an explorer of finished scores. */
export function createLab(model: WidgetModel, signal: AbortSignal, history?: History): Lab | null {
  if (!model.get("_live") || !model.send) return null;
  const listeners = new Set<(changed: ReadonlySet<Key>) => void>();
  const changed = new Set<Key>();
  const onChange = (key: Key): void => {
    if (!changed.size) requestAnimationFrame(tell);
    changed.add(key);
  };
  const watch = watchKernel(model.widget_manager, () => onChange("kernel"), signal);
  const read = (): LabState => {
    const traits = Object.fromEntries(KEYS.map((key) => [key, model.get(key)]));
    return { ...traits, kernel: watch.state } as unknown as LabState;
  };
  let state = read();
  const tell = (): void => {
    const names = new Set(changed);
    changed.clear();
    state = read();
    if (!signal.aborted) for (const listener of [...listeners]) listener(names);
  };
  /** A host may raise where its kernel has just ended; what it ends with is told by its signals. */
  const reach = (act: () => void): void => {
    if (watch.state === "gone") return;
    try {
      act();
    } catch (error) {
      console.warn("headwidget: the kernel was not reached", error);
    }
  };
  const send = (content: object): void => reach(() => model.send!(content));
  let quiet: ReturnType<typeof setTimeout> | undefined;
  /** Ask the kernel for an answer, where it has not said anything for a while. */
  const ping = (): void => {
    watch.expect();
    send({ ask: "alive" });
  };
  const heard = (): void => {
    watch.heard();
    clearTimeout(quiet);
    const { state: now } = model.get("_state") as RunState;
    if (now === "running" || now === "stopping") quiet = setTimeout(ping, QUIET);
  };
  let arrived = 0; // when the last picture of a run came
  const onPicture = (): void => {
    arrived = performance.now();
    heard();
  };
  const fromKernel: readonly Key[] = FROM_KERNEL;
  const wires = [
    ["change:_buffer", onPicture] as const,
    ["msg:custom", heard] as const,
    // ipywidgets lets go of a comm when its kernel restarts, and closes it when it is told to.
    ["comm_live_update", watch.gone] as const,
    ["comm:close", watch.gone] as const,
    ...KEYS.map((key) => {
      const changes = (): void => {
        if (fromKernel.includes(key)) heard();
        onChange(key);
      };
      return [`change:${key}`, changes] as const;
    }),
  ];
  for (const [event, callback] of wires) model.on(event, callback);
  signal.addEventListener("abort", () => {
    clearTimeout(quiet);
    for (const [event, callback] of wires) model.off(event, callback);
    listeners.clear();
  });
  const lab: Lab = {
    get state() {
      return state;
    },
    set(patch) {
      if (patch._scaled) history?.note(gates, { _scaled: patch._scaled });
      state = { ...state, ...patch };
      for (const [key, value] of Object.entries(patch)) model.set(key, value);
      reach(() => model.save_changes());
    },
    ask(what) {
      const now = performance.now();
      send({ ask: what, at: performance.timeOrigin + now, took: now - arrived });
      if (what !== "painted" && what !== "hidden") ping();
    },
    showAgain(index) {
      send({ ask: "return", index });
      ping();
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
  /** Gates are undone with the view's settings; what the next run is asked for is not. */
  const gates: Side = {
    get: () => state._scaled,
    put: (values) => lab.set(values),
  };
  return lab;
}
