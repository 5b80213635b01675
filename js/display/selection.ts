// What a click, a box, a label or a button does to the selection.

import { type Cell, type Head, headAt, type Scores } from "../scores/head_scores";

/** Scores, and which of their heads are selected. */
export interface Selection {
  readonly scores: Scores | null;
  readonly selected: readonly Head[];
}

const key = ([layer, head]: Head): string => `${layer} ${head}`;

/**
 * What a click on a head does: alone it takes the place of the selection (or ends it), with `add`
 * it joins or leaves.
 */
export function toggled(selected: readonly Head[], head: Head, add: boolean): Head[] {
  const others = selected.filter((other) => key(other) !== key(head));
  const was = others.length < selected.length;
  if (add) return was ? others : [...others, head];
  return was && selected.length === 1 ? [] : [head];
}

/**
 * What a box or a label does: its heads take the place of the selection, or with `add` join it
 * (or leave, if all were in).
 */
export function withMany(selected: readonly Head[], heads: readonly Head[], add: boolean): Head[] {
  if (!add) {
    const same = heads.length === selected.length && withMany(selected, heads, true).length === 0;
    return same ? [] : [...heads]; // a second click on a label takes it back
  }
  const [have, these] = [new Set(selected.map(key)), new Set(heads.map(key))];
  if (heads.every((head) => have.has(key(head))))
    return selected.filter((head) => !these.has(key(head)));
  return [...selected, ...heads.filter((head) => !have.has(key(head)))];
}

/** Every head from one corner to the other. */
export function inBox(scores: Scores, [a, b]: readonly [Cell, Cell]): Head[] {
  const out: Head[] = [];
  for (let row = Math.min(a.row, b.row); row <= Math.max(a.row, b.row); row++) {
    for (let head = Math.min(a.head, b.head); head <= Math.max(a.head, b.head); head++) {
      out.push(headAt(scores, { row, head }));
    }
  }
  return out;
}

/** The heads of a mask over the grid. */
export function inMask(scores: Scores, mask: ArrayLike<number>): Head[] {
  const out: Head[] = [];
  for (let i = 0; i < mask.length; i++) {
    if (mask[i])
      out.push(headAt(scores, { row: Math.floor(i / scores.heads), head: i % scores.heads }));
  }
  return out;
}

/** All heads that are not selected. */
export function inverted({ scores, selected }: Selection): Head[] {
  if (!scores) return [];
  const have = new Set(selected.map(key));
  const all = inMask(scores, new Uint8Array(scores.layers.length * scores.heads).fill(1));
  return all.filter((head) => !have.has(key(head)));
}

/** The selected heads of these scores, as places in a map. */
export function selectedCells({ scores, selected }: Selection): Cell[] {
  const rows = new Map(scores?.layers.map((layer, row) => [layer, row]));
  return selected.flatMap(([layer, head]) => {
    const row = rows.get(layer);
    return row === undefined || head >= scores!.heads ? [] : [{ row, head }];
  });
}
