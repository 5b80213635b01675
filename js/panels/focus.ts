// Keeps the focus in the widget when the part that has it is hidden, removed or disabled: else the
// page takes it, and the keys that follow (Ctrl+Z after Restore) with it.

import { focused } from "./dom";

export function keepFocus(root: HTMLElement, signal: AbortSignal): void {
  root.tabIndex = -1;
  let held: Element | null = null; // the part that has the focus
  const isGone = (el: Element): boolean =>
    !root.contains(el) || el.closest("[hidden]") !== null || el.matches(":disabled");
  const look = (): void => {
    if (!held || !isGone(held)) return;
    held = null;
    const at = focused(root);
    if (!at || at === document.body || (root.contains(at) && isGone(at)))
      root.focus({ preventScroll: true });
  };
  root.addEventListener(
    "focusin",
    ({ target }) => {
      held = target as Element;
    },
    { signal },
  );
  root.addEventListener(
    "focusout",
    ({ target }) => {
      if (!isGone(target as Element)) held = null; // somebody left it
    },
    { signal },
  );
  const observer = new MutationObserver(look);
  const attributeFilter = ["hidden", "disabled"];
  observer.observe(root, { attributeFilter, childList: true, subtree: true });
  signal.addEventListener("abort", () => observer.disconnect());
}
