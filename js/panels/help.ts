// The list of keys, opened with "?".

import type { Panel, Reads, Shows } from "../state";
import { button, focused, make } from "./dom";

const KEYS = [
  ["← ↑ → ↓", "move the cursor head"],
  ["Space", "select it, or take it out"],
  ["Enter", "select it alone"],
  ["l, h", "select its layer, its head index"],
  ["+ −", "move the threshold"],
  ["[ ]", "less or more agreement"],
  ["Escape", "clear the selection"],
  ["Alt ← →", "on a task’s chip: move it"],
  ["?", "this list"],
] as const;

export const help: Panel<Reads<"help"> & Shows<"help">> = (el, source) => {
  el.setAttribute("role", "dialog");
  el.setAttribute("aria-label", "Keys");
  el.tabIndex = -1;
  const fill = (): void => {
    const rows = KEYS.map(([key, text]) =>
      make("div", "key-row", make("kbd", "key", key), make("span", "key-text", text)),
    );
    const close = button("off", "Close", "Close the list (Escape)", () =>
      source.show({ help: false }),
    );
    el.append(make("strong", "help-title", "Keys"), ...rows, close);
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
