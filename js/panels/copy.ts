// Text for the clipboard; where a page may not use that, the text is shown to be copied by hand.

import { make } from "./dom";

/** The box that shows the text where it must be, and what copies it. */
export interface Copier {
  readonly el: HTMLTextAreaElement;
  /** Copy; gives what to say of it. */
  copy(words: string): Promise<string>;
}

export function copier(): Copier {
  const el = make("textarea", "copy-text");
  el.readOnly = true;
  el.hidden = true;
  el.setAttribute("aria-label", "Text to copy");
  return {
    el,
    async copy(words) {
      el.hidden = true;
      try {
        await navigator.clipboard.writeText(words);
        return "Copied.";
      } catch {
        [el.value, el.hidden] = [words, false];
        el.select();
        return "This page may not use the clipboard; copy the text below.";
      }
    },
  };
}
