// Below the maps: the selected heads as text and as a table, buttons that change them, and what
// went wrong.

import { formatter } from "../display/scales";
import { inMask, inverted, selectedCells } from "../display/selection";
import { viewOf } from "../display/views";
import { type Head, headAt, headName } from "../scores/head_scores";
import { number } from "../scores/threshold";
import type { Asked, Draws, Panel, Reads, Shows, State, Syncs } from "../state";
import { button, make, setText } from "./dom";

const NAMED = 12; // heads named one by one
const LISTED = 200; // heads in the table; the CSV has them all
const PAUSE = 150; // ms before text is read aloud: a held key is read once

type Source = Reads<Asked | "selected" | "error" | "spoken"> &
  Draws &
  Syncs<"selected"> &
  Shows<"spoken">;

export const status: Panel<Source> = (el, source) => {
  const text = make("span", "selected");
  const pass = button(
    "off",
    "Select what passes",
    "Select every head that passes the threshold",
    () => {
      const { scores } = source.state;
      const mask = source.picture()?.passing;
      if (scores && mask) choose(inMask(scores, mask));
    },
  );
  const invert = button("off", "Invert", "Select all others instead", () =>
    choose(inverted(source.state)),
  );
  const clear = button("off", "Clear", "Select nothing (Escape)", () => {
    (el.parentElement?.querySelector(".hw-plot") as HTMLElement | null)?.focus({
      preventScroll: true,
    }); // the button goes
    choose([]);
  });
  const choose = (selected: Head[]): void => {
    source.sync({ selected });
    source.show({ spoken: `${selected.length} selected` });
  };
  const error = make("div", "error");
  error.setAttribute("role", "alert");
  const details = make(
    "details",
    "table-box",
    make("summary", "table-name", "Table of the selected heads"),
  );
  const bar = make("div", "selection", text, pass, invert, clear);
  const spoken = make("div", "spoken");
  spoken.setAttribute("role", "status");
  el.append(error, bar, details, spoken);
  details.addEventListener("toggle", () => table());

  const table = (): void => {
    details.querySelector("table")?.remove();
    if (details.open) details.append(tableOf(source.state));
  };
  const draw = (): void => {
    const { selected, error: wrong, scores } = source.state;
    setText(error, wrong ?? "");
    error.hidden = !wrong;
    const names = selected
      .slice(0, NAMED)
      .map((head) => headName(scores, head))
      .join(", ");
    const more = selected.length > NAMED ? ` and ${selected.length - NAMED} more` : "";
    setText(
      text,
      selected.length
        ? `${selected.length} selected: ${names}${more}`
        : "Click a head to select it; shift adds, a drag selects a box, Escape clears.",
    );
    clear.hidden = invert.hidden = !selected.length;
    pass.hidden = !source.picture()?.passing;
    bar.hidden = !scores;
    details.hidden = !scores || !selected.length;
    if (details.open) table();
  };
  draw();
  let speaking: ReturnType<typeof setTimeout> | undefined;
  const stop = source.subscribe((changed) => {
    if (changed.has("selected") || changed.has("error") || changed.has("picture")) draw();
    if (!changed.has("spoken")) return;
    clearTimeout(speaking);
    speaking = setTimeout(() => setText(spoken, source.state.spoken), PAUSE);
  });
  return () => {
    clearTimeout(speaking);
    stop();
  };
};

/** The selected heads with their number in every task shown. */
function tableOf(state: Pick<State, Asked | "selected">): HTMLTableElement {
  const { scores, memo } = state;
  const table = make("table", "table");
  if (!scores || !memo) return table;
  const shown = viewOf(state).tasks(memo, state);
  const maps = shown.map((task) => number(memo, task, state));
  const formats = maps.map((map) =>
    formatter({ low: 0, high: map.reduce((most, v) => Math.max(most, Math.abs(v)), 0) }),
  );
  const row = (kind: "th" | "td", first: string, rest: string[]): HTMLElement => {
    const head = make("th", "table-head", first);
    head.scope = kind === "th" ? "col" : "row";
    const others = rest.map((text) => {
      const cell = make(kind, "table-cell", text);
      if (kind === "th") (cell as HTMLTableCellElement).scope = "col";
      return cell;
    });
    return make("tr", "table-row", head, ...others);
  };
  const cells = selectedCells(state);
  const body = cells.slice(0, LISTED).map((cell) => {
    const i = cell.row * scores.heads + cell.head;
    return row(
      "td",
      headName(scores, headAt(scores, cell)),
      maps.map((map, m) => formats[m]!(map[i]!)),
    );
  });
  table.append(
    make(
      "caption",
      "table-caption",
      cells.length > LISTED ? `The first ${LISTED} of ${cells.length}; the CSV has all.` : "",
    ),
    make(
      "thead",
      "table-top",
      row(
        "th",
        "Head",
        shown.map((task) => task.name),
      ),
    ),
    make("tbody", "table-body", ...body),
  );
  return table;
}
