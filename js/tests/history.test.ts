// Undo and redo: what a step is, and what each sets.

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import wireCase from "../../tests/golden/wire.json";
import { createHistory, type History, type Side, stepName } from "../history";
import { createLab } from "../live/lab";
import { standIn, type WidgetModel } from "../model";
import { createStore, type Store } from "../store";
import { bytes } from "./fixtures";

let time: number;
let can: [boolean, boolean];
let history: History;
let values: Record<string, unknown>;
let side: Side;
const set = (patch: Record<string, unknown>): void => {
  history.note(side, patch);
  values = { ...values, ...patch };
};

beforeEach(() => {
  time = 0;
  can = [false, false];
  history = createHistory(
    (...now) => {
      can = now;
    },
    () => time,
  );
  values = { threshold: null, rule: "value", selected: [] };
  side = { get: (key) => values[key], put: set };
});

describe("the history", () => {
  it("takes a drag as one step, and redoes it", () => {
    for (const threshold of [0.1, 0.2, 0.3]) set({ threshold });
    history.seal();
    set({ selected: [[1, 2]] });
    expect(can).toEqual([true, false]);
    expect(history.back()).toEqual(["selected"]);
    expect(values).toEqual({ threshold: 0.3, rule: "value", selected: [] });
    expect(history.back()).toEqual(["threshold"]);
    expect(values.threshold).toBeNull();
    expect(can).toEqual([false, true]);
    expect(history.back()).toBeNull();
    expect(history.forth()).toEqual(["threshold"]);
    expect(history.forth()).toEqual(["selected"]);
    expect(values).toEqual({ threshold: 0.3, rule: "value", selected: [[1, 2]] });
    expect(history.forth()).toBeNull();
  });

  it("undoes together what one click changed", () => {
    set({ rule: "top", threshold: 10 });
    set({ selected: [[0, 0]] });
    expect(history.back()).toEqual(["rule", "threshold", "selected"]);
    expect(values).toEqual({ threshold: null, rule: "value", selected: [] });
  });

  it("begins a step after a pause, without a pointer or a key", () => {
    set({ threshold: 1 });
    time = 900;
    set({ threshold: 2 });
    time = 2000;
    set({ threshold: 3 });
    history.back();
    expect(values.threshold).toBe(2);
    history.back();
    expect(values.threshold).toBeNull();
  });

  it("has no step for what changes nothing, or ends where it began", () => {
    set({ selected: [] });
    expect(can).toEqual([false, false]);
    set({ threshold: 1 });
    set({ threshold: null });
    history.seal();
    expect(can).toEqual([false, false]);
  });

  it("forgets what was undone once something else is done", () => {
    set({ threshold: 1 });
    history.back();
    set({ rule: "top" });
    expect(can).toEqual([true, false]);
  });

  it("names what a step changed", () => {
    expect(stepName(["selected", "rule", "_scaled"])).toBe("selection, rule, changed heads");
  });
});

describe("undo in a view", () => {
  let model: WidgetModel;
  const view = (): Store => createStore(model, new AbortController().signal, (f) => f());
  beforeEach(() => {
    const scores = { _header: wireCase.header, _buffer: bytes(wireCase.buffer) };
    const start = { ...scores, selected: [[3, 1]], threshold: 0.1, tasks: ["long"], view: "tasks" };
    model = { ...standIn({ ...start, _live: true, _scaled: [] }), send: () => {} };
    vi.useFakeTimers();
    vi.stubGlobal("requestAnimationFrame", (frame: () => void) => frame());
  });
  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  it("undoes what this view did, and leaves what Python or another view did", () => {
    const [one, two] = [view(), view()];
    one.sync({ threshold: 0.3 });
    two.sync({ view: "agreement" });
    model.set("selected", []); // as from Python
    expect([one.state.undoable, two.state.undoable]).toEqual([true, true]);
    one.undo();
    expect(model.get("threshold")).toBe(0.1);
    expect([model.get("view"), model.get("selected")]).toEqual(["agreement", []]);
    expect([one.state.undoable, one.state.redoable]).toEqual([false, true]);
    expect(one.state.spoken).toBe("undone: threshold");
    one.undo();
    expect([model.get("view"), one.state.spoken]).toEqual([
      "agreement",
      "Nothing is left to be undone",
    ]);
  });

  it("brings back by redo what undo replaced, also a value of Python's", () => {
    const one = view();
    one.sync({ threshold: 0.3 });
    vi.advanceTimersByTime(100); // and saved
    model.set("threshold", 0.7); // as from Python
    one.undo();
    expect(one.state.threshold).toBe(0.1);
    one.redo();
    expect(one.state.threshold).toBe(0.7);
  });

  it("undoes gates, and not what the next run is asked for", () => {
    const one = view();
    const lab = createLab(model, new AbortController().signal, one.history)!;
    lab.set({ _scaled: [[3, 1, 0]] });
    lab.set({ method: "ablation" });
    one.undo();
    expect([model.get("_scaled"), model.get("method")]).toEqual([[], "ablation"]);
    one.redo();
    expect(model.get("_scaled")).toEqual([[3, 1, 0]]);
  });

  it("resets settings and selection to those the view began with, in one step", () => {
    const one = view();
    one.sync({ threshold: 0.9, view: "agreement", selected: [] });
    one.reset();
    expect(one.state).toMatchObject({ threshold: 0.1, view: "tasks", selected: [[3, 1]] });
    one.undo();
    expect(one.state).toMatchObject({ threshold: 0.9, view: "agreement", selected: [] });
  });
});
