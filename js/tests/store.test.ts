// The store: what Python knows, what only the view knows, and when each is told.

import { afterEach, beforeEach, describe, expect, it, type Mock, vi } from "vitest";
import wireCase from "../../tests/golden/wire.json";
import { standIn, type WidgetModel } from "../model";
import { createStore, type Store } from "../store";

const buffer = Uint8Array.from(atob(wireCase.buffer), (c) => c.charCodeAt(0));
const start = {
  _header: wireCase.header,
  _buffer: buffer,
  selected: [],
  threshold: null,
  tasks: ["long"],
  view: "tasks",
};

let model: WidgetModel;
let saved: Mock<() => void>;
let frames: (() => void)[];
const view = (): { store: Store; close: () => void } => {
  const controller = new AbortController();
  return {
    store: createStore(model, controller.signal, (f) => frames.push(f)),
    close: () => controller.abort(),
  };
};
const nextFrame = (): void => {
  for (const frame of frames.splice(0)) frame();
};

beforeEach(() => {
  vi.useFakeTimers();
  frames = [];
  saved = vi.fn();
  model = { ...standIn(start), save_changes: saved };
});
afterEach(() => vi.useRealTimers());

describe("the store", () => {
  it("tells its listeners once a frame, whatever happened in it", () => {
    const { store } = view();
    const heard = vi.fn();
    store.subscribe(heard);
    store.sync({ threshold: 0.1 });
    store.sync({ threshold: 0.2 });
    store.point({ row: 0, head: 1, place: { x: 0, y: 0 } });
    expect(heard).not.toHaveBeenCalled();
    nextFrame();
    expect(heard).toHaveBeenCalledExactlyOnceWith(
      new Set(["undoable", "threshold", "point", "cursor", "picture"]),
    );
  });

  it("undoes only what the scores shown now have room for", () => {
    const { store } = view();
    store.sync({ tasks: [], selected: [[99, 0]] });
    store.history.seal();
    store.sync({ tasks: ["long"], selected: [] });
    store.history.seal();
    store.undo();
    expect(store.state.selected).toEqual([]); // no layer 99 here
    expect(model.get("tasks")).toEqual([]);
  });

  it("saves a drag now and then, with the last value, and hover only when Python listens", () => {
    const { store } = view();
    for (let i = 1; i <= 20; i++) {
      store.sync({ threshold: i });
      vi.advanceTimersByTime(10);
    }
    vi.advanceTimersByTime(200);
    expect(saved.mock.calls.length).toBeGreaterThan(1);
    expect(saved.mock.calls.length).toBeLessThan(5);
    expect(model.get("threshold")).toBe(20);
    saved.mockClear();
    store.point({ row: 1, head: 1, place: { x: 5, y: 5 } });
    vi.advanceTimersByTime(500);
    expect(saved).not.toHaveBeenCalled();
    model.set("_hover_heard", true);
    store.point({ row: 1, head: 2 });
    store.point({ row: 1, head: 3 });
    vi.advanceTimersByTime(500);
    expect(saved).toHaveBeenCalledOnce();
    expect(model.get("hover")).toEqual([7, 3]); // by the model's own layer number
  });

  it("points at the same head in every view of a model, and at one that Python names", () => {
    const [one, two] = [view().store, view().store];
    one.point({ row: 2, head: 0, place: { x: 9, y: 9 } });
    // Not replaced by its own echo.
    expect(one.state.point).toEqual({ row: 2, head: 0, place: { x: 9, y: 9 } });
    expect(two.state.point).toEqual({ row: 2, head: 0 }); // no card elsewhere
    model.set("hover", [3, 1]); // as from Python
    expect([one.state.point, two.state.point]).toEqual([
      { row: 0, head: 1 },
      { row: 0, head: 1 },
    ]);
    model.set("hover", [4, 1]); // a layer these scores do not have
    expect(one.state.point).toBeNull();
    one.point({ row: 1, head: 1 });
    one.point(null);
    expect([one.state.point, two.state.point, model.get("hover")]).toEqual([null, null, null]);
    expect(one.state.cursor).toEqual({ row: 1, head: 1 }); // the keyboard goes on from there
  });

  it("makes a picture once for what it depends on", () => {
    const { store } = view();
    const picture = store.picture();
    store.point({ row: 0, head: 0 });
    store.sync({ selected: [[3, 1]] });
    expect(store.picture()).toBe(picture);
    store.sync({ threshold: 0.1 });
    expect(store.picture()).not.toBe(picture);
    model.set("_buffer", new Uint8Array(3));
    return Promise.resolve().then(() => expect(store.picture()).toBeNull());
  });

  it("keeps two views of one model in step", () => {
    const [one, two] = [view(), view()];
    one.store.sync({ selected: [[3, 1]] });
    expect(two.store.state.selected).toEqual([[3, 1]]);
    model.set("threshold", 0.5); // as from Python
    expect([one.store.state.threshold, two.store.state.threshold]).toEqual([0.5, 0.5]);
  });

  it("is not pulled back by the kernel's echo of an earlier value", () => {
    const { store } = view();
    const other = view().store;
    store.sync({ threshold: 1 });
    vi.advanceTimersByTime(100); // 1 is saved
    store.sync({ threshold: 2 });
    model.set("threshold", 1); // the echo of 1
    expect([store.state.threshold, other.state.threshold, model.get("threshold")]).toEqual([
      2, 2, 2,
    ]);
    vi.advanceTimersByTime(100); // 2 is saved
    model.set("threshold", 3); // Python's own
    expect([store.state.threshold, other.state.threshold]).toEqual([3, 3]);
  });

  it("lets go of the model when its view closes, and saves what was not saved yet", () => {
    const { store, close } = view();
    const heard = vi.fn();
    store.subscribe(heard);
    store.sync({ threshold: 0.3 });
    close();
    expect(saved).toHaveBeenCalledOnce();
    model.set("threshold", 0.9);
    nextFrame();
    expect(store.state.threshold).toBe(0.3);
    expect(heard).not.toHaveBeenCalled();
  });

  it("reads new scores once when header and buffer change together", async () => {
    const { store } = view();
    model.set("_header", { ...wireCase.header, model: "another" });
    model.set("_buffer", buffer.slice());
    await Promise.resolve();
    expect(store.state.scores?.model).toBe("another");
    expect(store.state.error).toBeNull();
    model.set("_buffer", new Uint8Array(3));
    await Promise.resolve();
    expect(store.state.scores).toBeNull();
    expect(store.state.error).toMatch(
      /^These scores cannot be shown: the buffer holds .* promises/,
    );
  });

  it("shows the error of a listener and goes on with the others", () => {
    const { store } = view();
    const other = vi.fn();
    const quiet = vi.spyOn(console, "error").mockImplementation(() => {});
    const stop = store.subscribe(() => {
      stop();
      throw new Error("a panel broke.");
    });
    store.subscribe(other);
    store.sync({ threshold: 1 });
    nextFrame();
    expect(other).toHaveBeenCalled();
    expect(store.state.error).toBe("a panel broke.");
    quiet.mockRestore();
  });
});

describe("what follows from the state", () => {
  it("shows tasks in the order asked for, without those it does not have", () => {
    const { store } = view();
    store.sync({ tasks: ["long", "gone", "<b>syntax</b>"] });
    expect(store.picture()?.panels.map((panel) => panel.title)).toEqual(["long", "<b>syntax</b>"]);
    store.sync({ task: "math 🧮" }); // alone, though not among the others
    expect(store.picture()?.panels.map((panel) => panel.title)).toEqual(["math 🧮"]);
    store.sync({ task: "gone" });
    expect(store.picture()?.panels.map((panel) => panel.title)).toEqual(["long", "<b>syntax</b>"]);
  });

  it("compares signed scores by size", () => {
    const { store } = view();
    store.sync({ threshold: 0.25, tasks: ["<b>syntax</b>"] });
    const task = store.state.scores!.tasks[0]!;
    const passes = Array.from(store.picture()!.panels[0]!.passes!);
    expect(passes).toEqual(Array.from(task.mean, (value) => (Math.abs(value) >= 0.25 ? 1 : 0)));
    expect(task.mean.some((value, i) => value < 0 && passes[i])).toBe(true);
    store.sync({ threshold: null });
    expect(store.picture()!.panels[0]!.passes).toBeNull();
    expect(store.picture()!.passing).toBeNull();
  });
});
