// The selected heads as a table, with their number in every task shown.

import { formatter } from "../display/scales";
import { selectedCells } from "../display/selection";
import { viewOf } from "../display/views";
import { headAt, headName } from "../scores/head_scores";
import { number } from "../scores/threshold";
import type { Asked, Panel, Reads, State } from "../state";
import { make } from "./dom";

const LISTED = 200; // heads in the table; the CSV has them all

export const selectedTable: Panel<Reads<Asked | "selected">> = (el, source) => {
  const name = make("summary", "table-name", "Table of the selected heads");
  const details = make("details", "table-box", name);
  el.append(details);
  const fill = (): void => {
    details.querySelector("table")?.remove();
    if (details.open) details.append(tableOf(source.state));
  };
  details.addEventListener("toggle", fill);
  const draw = (): void => {
    const { scores, selected } = source.state;
    details.hidden = !scores || !selected.length;
    if (details.open) fill();
  };
  draw();
  return source.subscribe((changed) => {
    if (changed.has("selected") || changed.has("picture")) draw();
  });
};

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
