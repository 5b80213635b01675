// What stands above a map: its task's name, which of the task's maps it is, and what is counted.

import { clean, endText, formatter } from "./scales";
import type { Panel, Picture } from "./views/picture";

/** "Math" and "Always" of the panel "Math (Always)". */
export function namesOf({ title, task }: Panel): readonly [string, string] {
  const part = task === null ? null : /^ \((.*)\)$/.exec(title.slice(task.length));
  return part ? [task!, part[1]!] : [title, ""];
}

/** How many heads pass, or are of a class, and the word behind the number. */
export function countOf(
  { countWord }: Picture,
  { passes, values, missing }: Panel,
): readonly [string, string] {
  const mask = countWord === null ? values : passes;
  if (!mask || (missing && !missing.includes(0))) return ["", ""];
  let sum = 0;
  for (let i = 0; i < mask.length; i++) if (mask[i]) sum++;
  return [`${sum}`, countWord ?? ""];
}

/** Where the colours of a map end, when it has its own; else empty. */
export const endOf = ({ range }: Panel): string => (range ? endText(range) : "");

/** The largest score of a task that can hardly be seen beside the others; else empty. */
export const quietOf = ({ quiet }: Panel): string =>
  quiet === null || quiet === undefined ? "" : short(quiet);

/** A number with two digits that mean something. */
function short(value: number): string {
  const rounded = clean(Number(value.toPrecision(2)));
  const plain = rounded >= 1e-4 && rounded < 1e5;
  return plain ? String(rounded) : formatter({ low: 0, high: value })(value);
}
