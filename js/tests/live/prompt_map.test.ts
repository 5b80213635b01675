// The prompt's map is a source of its own: the widget's heads and selection, another picture.

import { describe, expect, it, vi } from "vitest";
import type { Lab, LabState } from "../../live/lab";
import { promptSource } from "../../live/prompt_map";
import { Memo } from "../../scores/memo";
import type { Change, Listener, MapSource, MapState, Reads } from "../../state";
import { scoresOf, task } from "../fixtures";

const scores = scoresOf([task("a", [[1, 2, 3, 4]])], [5, 8]);
const VALUES = [
  [1, 2, 3, 4],
  [-1, 0, 0, 9],
];

function open(read: Partial<LabState> = {}) {
  const listeners = {
    widget: new Set<Listener>(),
    lab: new Set<Parameters<Lab["subscribe"]>[0]>(),
  };
  const state: MapState & { orientation: "x" | null } = {
    ...{ scores, memo: new Memo(scores), selected: [], point: null, cursor: { row: 0, head: 0 } },
    ...{
      box: null,
      changed: [],
      width: 900,
      ratio: 1,
      scheme: "light",
      settled: true,
      live: true,
      orientation: null,
    },
  };
  const widget: MapSource & Reads<"orientation"> = {
    state,
    picture: () => null,
    point: vi.fn(),
    sync: vi.fn(),
    show: vi.fn(),
    subscribe(listener) {
      listeners.widget.add(listener);
      return () => listeners.widget.delete(listener);
    },
  };
  const labState = {
    _maps: new DataView(Float32Array.from(VALUES.flat()).buffer),
    _reading: {
      predictions: [
        [7, " Paris", 0.5, null],
        [9, "\n", 0.1, null],
      ],
    },
    target: null,
    ...read,
  } as unknown as LabState;
  const lab = {
    state: labState,
    subscribe(listener: Parameters<Lab["subscribe"]>[0]) {
      listeners.lab.add(listener);
      return () => listeners.lab.delete(listener);
    },
  } as unknown as Lab;
  return { source: promptSource(lab, widget), widget, listeners };
}

describe("the prompt's map", () => {
  it("shows what heads add to the likeliest token, or to the one that is chosen", () => {
    const panel = (read: Partial<LabState>) => open(read).source.picture()!.panels[0]!;
    expect(panel({}).title).toBe("adds to ␣Paris");
    expect([...panel({}).values]).toEqual(VALUES[0]);
    expect(panel({ target: 9 }).title).toBe("adds to ⏎");
    expect([...panel({ target: 9 }).values]).toEqual(VALUES[1]);
  });

  it("is made once, and is none where the numbers are of other heads", () => {
    const { source } = open();
    expect(source.picture()).toBe(source.picture());
    expect(open({ _maps: new DataView(new ArrayBuffer(12)) }).source.picture()).toBeNull();
    expect(open({ _reading: {} }).source.picture()).toBeNull();
  });

  it("hears of the widget and of the prompt, until it is let go", () => {
    const { source, listeners } = open();
    const heard = vi.fn();
    const stop = source.subscribe(heard);
    for (const listener of listeners.lab) listener(new Set(["_head"]));
    expect(heard).not.toHaveBeenCalled();
    for (const listener of listeners.lab) listener(new Set(["target"]));
    expect(heard).toHaveBeenLastCalledWith(new Set<Change>(["picture", "layout"]));
    for (const listener of listeners.widget) listener(new Set(["point"]));
    expect(heard).toHaveBeenLastCalledWith(new Set<Change>(["point"]));
    stop();
    expect([listeners.lab.size, listeners.widget.size]).toEqual([0, 0]);
  });

  it("selects and points in the widget, and is no wider than the text beside it", () => {
    const { source, widget } = open();
    source.sync({ selected: [[5, 1]] });
    source.point({ row: 1, head: 0 });
    expect(widget.sync).toHaveBeenCalledWith({ selected: [[5, 1]] });
    expect(widget.point).toHaveBeenCalledWith({ row: 1, head: 0 });
    expect(source.state.width).toBe(230);
    expect(source.state.scores).toBe(scores);
  });
});
