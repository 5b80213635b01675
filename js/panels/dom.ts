// One way to make an element: its text is always text, never HTML.

/** An element with a class of ours, with text or children inside. */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  name: string,
  ...inside: (string | Node)[]
): HTMLElementTagNameMap[K] {
  const el = document.createElement(tag);
  el.className = `hw-${name}`;
  el.append(...inside);
  return el;
}

/** A button that does something. */
export function button(
  name: string,
  text: string,
  title: string,
  act: () => void,
): HTMLButtonElement {
  const el = make("button", name, text);
  el.type = "button";
  el.title = title;
  el.addEventListener("click", act);
  return el;
}

/** A choice of a few values, with what it is called before it. */
export function choice<T extends string>(
  name: string,
  options: readonly (readonly [T, string])[],
  act: (value: T) => void,
): { el: HTMLLabelElement; select: HTMLSelectElement } {
  const select = make("select", "select");
  for (const [value, text] of options) select.append(new Option(text, value));
  select.addEventListener("change", () => act(select.value as T));
  keepKeys(select);
  return { el: make("label", "choice", make("span", "choice-name", name), select), select };
}

/** Keys that move a control stay with it: else the notebook moves to another cell. */
export function keepKeys(el: HTMLElement): void {
  el.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") event.stopPropagation();
  });
}

/** Is it a field that is typed in or chosen from? */
export const isField = (el: EventTarget | undefined): boolean =>
  el instanceof HTMLElement && el.matches("textarea, select, input:not([type=range])");

/** What has the focus, also inside a shadow root (marimo), which the document does not see into. */
export const focused = (el: Node): Element | null =>
  (el.getRootNode() as Document | ShadowRoot).activeElement;

/** Set text only where it changed: a screen is not laid out again for nothing. */
export function setText(el: Node, text: string): void {
  if (el.textContent !== text) el.textContent = text;
}

/** Fill a list anew; the row that had the focus in it, by its place, has it again. */
export function refill(list: HTMLElement, rows: readonly HTMLElement[]): void {
  const focus = focused(list);
  const at = Array.from(list.children).findIndex((row) => row.contains(focus));
  list.replaceChildren(...rows);
  const row = at < 0 ? undefined : rows[Math.min(at, rows.length - 1)];
  (row?.querySelector("button") ?? row)?.focus({ preventScroll: true });
}

/** Several clean-ups as one. */
export const all =
  (...disposes: (() => void)[]): (() => void) =>
  () => {
    for (const dispose of disposes.splice(0)) dispose();
  };
