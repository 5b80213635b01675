// The last runs of a lab, as a list to return to, or to compare with what is shown.

import { copier } from "../panels/copy";
import { button, make, refill } from "../panels/dom";
import { popup } from "../panels/popup";
import type { Lab } from "./lab";
import { comparison, pastText } from "./past_text";

/** The menu of past runs; its room stays while there are none. */
export function pastRuns(lab: Lab) {
  const el = make("details", "menu hw-run-menu hw-run-past");
  let isOut = false; // no kernel to ask
  const fill = (box: HTMLElement): (() => void) => {
    const list = make("div", "past-list");
    const note = make("p", "option-note");
    note.setAttribute("role", "status");
    const text = copier();
    box.append(list, note, text.el);
    const copy = async (words: string): Promise<void> => {
      const done = await text.copy(words);
      note.textContent = text.el.hidden ? `${done} Run it in another cell.` : done;
    };
    const draw = (): void => {
      const rows = lab.state._past.map((_, index) => row(lab, index, isOut, copy));
      refill(list, rows);
      note.textContent = "";
      text.el.hidden = true;
    };
    draw();
    return lab.subscribe((changed) => {
      if (changed.has("_past") || changed.has("kernel")) draw();
    });
  };
  const dispose = popup(el, "Runs", fill);
  const label = el.querySelector("summary")!;
  label.title = "The last runs, to be shown again or compared";
  const follow = (out: boolean): void => {
    isOut = out;
    el.classList.toggle("hw-run-away", !lab.state._past.length);
  };
  return { el, dispose, follow };
}

/** A run: a button that shows it again, and one that copies the Python that compares it. */
function row(
  lab: Lab,
  index: number,
  isOut: boolean,
  copy: (words: string) => Promise<void>,
): HTMLElement {
  const past = lab.state._past[index]!;
  const again = button("menu-item", pastText(past), "Show the scores of this run on the maps", () =>
    lab.showAgain(index),
  );
  again.setAttribute("aria-pressed", String(past.shown));
  again.disabled = isOut;
  const words = comparison(lab.state._past, index);
  if (words === null) return make("div", "past-run", again);
  const title = "Copy the Python that shows this run beside the one on the maps";
  return make(
    "div",
    "past-run",
    again,
    button("off", "Compare", title, () => void copy(words)),
  );
}
