// The last runs of a lab, as a list to return to.

import { button, make, refill } from "../panels/dom";
import { popup } from "../panels/popup";
import type { Lab, PastRun } from "./lab";
import { headsChanged } from "./run_text";

/** The menu of past runs; its room stays while there are none. */
export function pastRuns(lab: Lab) {
  const el = make("details", "menu hw-run-menu hw-run-past");
  let isOut = false; // no kernel to ask
  const fill = (box: HTMLElement): (() => void) => {
    const draw = (): void => {
      const rows = lab.state._past.map((past, index) => row(lab, past, index));
      for (const one of rows) one.disabled = isOut;
      refill(box, rows);
    };
    draw();
    return lab.subscribe((changed) => {
      if (changed.has("_past") || changed.has("kernel")) draw();
    });
  };
  const dispose = popup(el, "Runs", fill);
  const label = el.querySelector("summary")!;
  label.title = "The last runs, to be shown again";
  const follow = (out: boolean): void => {
    isOut = out;
    el.classList.toggle("hw-run-away", !lab.state._past.length);
  };
  return { el, dispose, follow };
}

function row(lab: Lab, past: PastRun, index: number): HTMLButtonElement {
  const facts = [
    past.method,
    past.tasks.length > 2 ? `${past.tasks.length} tasks` : past.tasks.join(", "),
    `${past.prompts} prompt${past.prompts === 1 ? "" : "s"}`,
    past.partial ? "stopped" : "",
    past.heads ? headsChanged(past.heads) : "",
    past.at,
  ];
  const text = facts.filter(Boolean).join(" · ");
  const el = button("menu-item", text, "Show the scores of this run on the maps", () =>
    lab.showAgain(index),
  );
  el.setAttribute("aria-pressed", String(past.shown));
  return el;
}
