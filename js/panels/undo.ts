// Undo and redo: two buttons, their keys, and what ends a step.

import type { Panel, Reads, Undoes } from "../state";
import { button } from "./dom";

export const undo: Panel<Reads<"undoable" | "redoable"> & Undoes> = (el, source) => {
  const back = button("icon", "↶", "Undo (Ctrl+Z)", () => source.undo());
  const forth = button("icon", "↷", "Redo (Ctrl+Shift+Z)", () => source.redo());
  back.setAttribute("aria-label", "Undo");
  forth.setAttribute("aria-label", "Redo");
  el.append(back, forth);
  const draw = (): void => {
    // Not `disabled`: the button would lose the focus, and the keys with it.
    back.setAttribute("aria-disabled", String(!source.state.undoable));
    forth.setAttribute("aria-disabled", String(!source.state.redoable));
  };
  draw();
  return source.subscribe((changed) => {
    if (changed.has("undoable") || changed.has("redoable")) draw();
  });
};

/** The keys of undo and redo, wherever the focus is in the widget, and what ends a step. */
export function undoing(
  root: HTMLElement,
  { history, undo, redo }: Undoes & { readonly history: { seal(): void } },
  signal: AbortSignal,
): void {
  const seal = (): void => history.seal();
  // Capturing: sliders and menus keep their keys to themselves.
  const options = { signal, capture: true };
  root.addEventListener("pointerdown", seal, options);
  root.addEventListener("click", seal, options);
  root.addEventListener(
    "keydown",
    (event) => {
      if (!event.repeat) seal();
      const act = actOf(event);
      if (!act || isTyping(event)) return;
      event.preventDefault();
      event.stopPropagation();
      if (act === "undo") undo();
      else redo();
    },
    options,
  );
}

/** Ctrl+Z, Ctrl+Shift+Z and Ctrl+Y; on a Mac with the command key. */
function actOf({ key, ctrlKey, metaKey, altKey, shiftKey }: KeyboardEvent): "undo" | "redo" | null {
  if (ctrlKey === metaKey || altKey) return null;
  if (key.toLowerCase() === "z") return shiftKey ? "redo" : "undo";
  return key.toLowerCase() === "y" && !shiftKey ? "redo" : null;
}

/** What is typed into a box has the browser's own undo. */
function isTyping(event: KeyboardEvent): boolean {
  const [at] = event.composedPath();
  if (at instanceof HTMLInputElement) return !["range", "checkbox", "radio"].includes(at.type);
  return at instanceof HTMLTextAreaElement || (at instanceof HTMLElement && at.isContentEditable);
}
