// A head as it is read aloud.

import { type Cell, headAt, type Scores } from "../scores/head_scores";
import { type Picture, scaleOf } from "./views/picture";

/** Its name and what every map shows of it. */
export function spokenHead(scores: Scores, picture: Picture, cell: Cell): string {
  const [layer, head] = headAt(scores, cell);
  const i = cell.row * scores.heads + cell.head;
  const classes = scaleOf(picture) === null;
  // The first map of a legend has every class; the others say no more.
  const panels = classes ? picture.panels.slice(0, 1) : picture.panels;
  const values = panels.map(({ title, values, missing }) => {
    if (missing?.[i]) return `${title} not measured`;
    return classes ? picture.legend[values[i]!]?.name : `${title} ${values[i]!.toPrecision(3)}`;
  });
  return `Layer ${layer}, head ${head}: ${values.filter(Boolean).join(", ")}`;
}
