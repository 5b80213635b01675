// Mouse and keys, opened with "?", and the way to the tour.

import type { Panel, Reads, Shows } from "../state";
import { button, focused, make } from "./dom";

type Row = readonly [string, string];

const MOUSE: readonly Row[] = [
  ["Point", "a head’s number in every task"],
  ["Click", "select a head"],
  ["Shift + click", "add it, or take it out"],
  ["Drag over a map", "select a box"],
  ["Click a tick label", "select a layer, a head index"],
  ["Drag the threshold", "heads below it fade"],
  ["Click a task’s chip", "show or hide it"],
  ["Drag a task’s chip", "move it"],
];
const KEYS: readonly Row[] = [
  ["← ↑ → ↓", "move the cursor head"],
  ["Space", "select it, or take it out"],
  ["Enter", "select it alone"],
  ["l, h", "select its layer, its head index"],
  ["+ −", "move the threshold"],
  ["[ ]", "less or more agreement"],
  ["Escape", "clear the selection"],
  ["Ctrl Z", "undo; with Shift, redo (⌘ on a Mac)"],
  ["Alt ← →", "on a task’s chip: move it"],
  ["?", "this list"],
];

export const help: Panel<Reads<"help"> & Shows<"help" | "tour">> = (el, source) => {
  el.setAttribute("role", "dialog");
  el.setAttribute("aria-label", "Help");
  el.tabIndex = -1;
  const fill = (): void => {
    const tour = button("go", "Start the tour", "Six steps through the widget", () =>
      source.show({ help: false, tour: true }),
    );
    const close = button("off", "Close", "Close this list (Escape)", () =>
      source.show({ help: false }),
    );
    el.append(
      make("div", "help-lists", list("Mouse", MOUSE), list("Keys", KEYS)),
      make("div", "help-acts", tour, close),
    );
  };
  el.hidden = true;
  let before: Element | null = null;
  return source.subscribe((changed) => {
    if (!changed.has("help")) return;
    if (!el.firstChild) fill();
    el.hidden = !source.state.help;
    if (source.state.help) {
      before = focused(el);
      el.focus({ preventScroll: true });
    } else if (before instanceof HTMLElement) before.focus({ preventScroll: true });
  });
};

const list = (name: string, rows: readonly Row[]): HTMLElement =>
  make(
    "div",
    "help-list",
    make("strong", "help-title", name),
    ...rows.map(([key, text]) =>
      make("div", "key-row", make("kbd", "key", key), make("span", "key-text", text)),
    ),
  );
