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

/** Several clean-ups as one. */
export const all =
  (...disposes: (() => void)[]): (() => void) =>
  () => {
    for (const dispose of disposes.splice(0)) dispose();
  };
