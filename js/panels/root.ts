// What the widget's root carries for all panels: whether it is simple, and the size of its text.

import type { Reads } from "../state";

/** Keep the root's class and scale as the state has them; gives the clean-up. */
export function wear(root: HTMLElement, source: Reads<"simple" | "textScale">): () => void {
  const draw = (): void => {
    root.classList.toggle("hw-simple", source.state.simple);
    root.style.setProperty("--hw-scale", String(source.state.textScale));
  };
  draw();
  return source.subscribe((changed) => {
    if (changed.has("simple") || changed.has("textScale")) draw();
  });
}
