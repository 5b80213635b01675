// A menu: a button that opens a box, filled when it is first opened, so that a first paint does
// not wait for it.

import { make } from "./dom";

/** A menu of that name in a details element; `fill` fills its box and returns the clean-up. */
export function popup(
  el: HTMLElement,
  name: string,
  fill: (box: HTMLElement) => () => void,
): () => void {
  const summary = make("summary", "icon", name);
  const box = make("div", "popup");
  el.append(summary, box);
  let dispose: (() => void) | null = null;
  const open = (): void => {
    dispose ??= fill(box);
  };
  summary.addEventListener("click", open);
  el.addEventListener("toggle", open);
  const release = closing(el);
  return () => {
    release();
    dispose?.();
    dispose = (): void => {}; // a toggle that is still to come fills nothing
  };
}

/** Close an open menu on Escape and on a press elsewhere. */
function closing(el: HTMLElement): () => void {
  const details = el as HTMLDetailsElement;
  const away = (event: Event): void => {
    if (!event.composedPath().includes(el)) details.open = false;
  };
  const leave = (event: KeyboardEvent): void => {
    if (event.key !== "Escape" || !details.open) return;
    details.open = false;
    details.querySelector("summary")?.focus();
    event.stopPropagation();
  };
  const opened = (): void => {
    if (details.open) document.addEventListener("pointerdown", away, true);
    else document.removeEventListener("pointerdown", away, true);
  };
  details.addEventListener("toggle", opened);
  details.addEventListener("keydown", leave);
  return () => {
    details.removeEventListener("toggle", opened); // one may still be on its way
    document.removeEventListener("pointerdown", away, true);
  };
}
