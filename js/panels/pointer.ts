// Pointer and keyboard on a map: point, select, draw a box, choose a layer or a head index, move.

import { inBox, toggled, withMany } from "../display/selection";
import { spokenHead } from "../display/spoken";
import { type Cell, headAt, headName } from "../scores/head_scores";
import type { MapSource } from "../state";

interface Parts {
  readonly plot: HTMLElement;
  /** The strips that hold the ticks. */
  readonly rows: HTMLElement;
  readonly columns: HTMLElement;
}

const adding = (event: MouseEvent | KeyboardEvent): boolean =>
  event.shiftKey || event.ctrlKey || event.metaKey;

/** Listen on the parts of a map until `signal` aborts. */
export function listen(parts: Parts, source: MapSource, signal: AbortSignal): void {
  const { plot, rows, columns } = parts;
  const layersOnX = (): boolean => source.picture()?.layersOn === "x";
  /** The cell under a pointer; `clamped` takes the nearest one. */
  const at = (event: MouseEvent, clamped = false): Cell | null => {
    const { scores } = source.state;
    if (!scores) return null;
    const box = plot.getBoundingClientRect();
    const [layers, heads] = [scores.layers.length, scores.heads];
    const [across, down] = layersOnX() ? [layers, heads] : [heads, layers];
    let x = Math.floor(((event.clientX - box.left) / box.width) * across);
    let y = Math.floor(((event.clientY - box.top) / box.height) * down);
    if (clamped)
      [x, y] = [Math.max(0, Math.min(across - 1, x)), Math.max(0, Math.min(down - 1, y))];
    if (x < 0 || y < 0 || x >= across || y >= down) return null;
    return layersOnX() ? { row: x, head: y } : { row: y, head: x };
  };
  const select = (cell: Cell, add: boolean): void => {
    const { scores, selected } = source.state;
    if (!scores) return;
    const head = headAt(scores, cell);
    const next = toggled(selected, head, add);
    source.sync({ selected: next });
    const now = next.some(([layer, index]) => layer === head[0] && index === head[1]);
    source.show({
      spoken: `${headName(scores, head)} ${now ? "selected" : "not selected"}, ${next.length} in all`,
    });
  };
  /** A whole layer or a head index. */
  const selectLine = (cell: Cell, layer: boolean, add: boolean): void => {
    const { scores, selected } = source.state;
    if (!scores) return;
    const ends: [Cell, Cell] = layer
      ? [
          { row: cell.row, head: 0 },
          { row: cell.row, head: scores.heads - 1 },
        ]
      : [
          { row: 0, head: cell.head },
          { row: scores.layers.length - 1, head: cell.head },
        ];
    const next = withMany(selected, inBox(scores, ends), add);
    source.sync({ selected: next });
    source.show({ spoken: `${next.length} selected` });
  };

  // ---- pointer ----
  let from: Cell | null = null; // where a box began
  let drew = false; // a box, so the click that ends it is none
  const move = (event: PointerEvent): void => {
    const cell = at(event, from !== null);
    source.point(cell && { ...cell, place: { x: event.clientX, y: event.clientY } });
    if (!from || !cell) return;
    if (cell.row !== from.row || cell.head !== from.head) drew = true;
    if (drew) source.show({ box: [from, cell] });
  };
  const start = (event: PointerEvent): void => {
    drew = false;
    if (event.button !== 0 || event.pointerType === "touch") return; // a finger scrolls
    from = at(event);
    if (from) plot.setPointerCapture(event.pointerId);
  };
  const end = (event: PointerEvent): void => {
    const { scores, selected, box } = source.state;
    if (drew && box && scores && event.type === "pointerup") {
      source.sync({ selected: withMany(selected, inBox(scores, box), adding(event)) });
    }
    from = null;
    source.show({ box: null });
  };
  const click = (event: MouseEvent): void => {
    const cell = at(event);
    if (cell && !drew) select(cell, adding(event));
    drew = false;
  };
  const leave = (): void => {
    if (!from) source.point(null);
  };
  plot.addEventListener("pointermove", move, { signal });
  plot.addEventListener("pointerdown", start, { signal });
  plot.addEventListener("pointerup", end, { signal });
  plot.addEventListener("pointercancel", end, { signal });
  plot.addEventListener("pointerleave", leave, { signal });
  plot.addEventListener("blur", leave, { signal });
  plot.addEventListener("click", click, { signal });
  for (const [strip, vertical] of [
    [rows, true],
    [columns, false],
  ] as const) {
    strip.addEventListener(
      "click",
      (event) => {
        const cell = at(event, true);
        if (cell) selectLine(cell, vertical !== layersOnX(), adding(event));
      },
      { signal },
    );
  }

  // ---- keyboard ----
  const steps: Record<string, [number, number]> = {
    ArrowUp: [0, -1],
    ArrowDown: [0, 1],
    ArrowLeft: [-1, 0],
    ArrowRight: [1, 0],
  };
  const go = (step: readonly [number, number]): void => {
    const { scores, cursor, point } = source.state;
    if (!scores) return;
    const [right, down] = point ? step : [0, 0]; // the first key shows where the cursor is
    const [rowStep, headStep] = layersOnX() ? [right, down] : [down, right];
    const row = Math.max(0, Math.min(scores.layers.length - 1, cursor.row + rowStep));
    const head = Math.max(0, Math.min(scores.heads - 1, cursor.head + headStep));
    const box = plot.getBoundingClientRect();
    const [fromLeft, fromTop] = layersOnX()
      ? [(row + 1) / scores.layers.length, (head + 0.5) / scores.heads]
      : [(head + 1) / scores.heads, (row + 0.5) / scores.layers.length];
    const place = { x: box.left + fromLeft * box.width, y: box.top + fromTop * box.height };
    source.point({ row, head, place });
    const picture = source.picture();
    if (picture) source.show({ spoken: spokenHead(scores, picture, { row, head }) });
  };
  const press = (event: KeyboardEvent): void => {
    const { cursor } = source.state;
    if (event.altKey) return;
    const step = steps[event.key];
    if (step && !event.ctrlKey && !event.metaKey) go(step);
    else if (event.key === "Enter" || event.key === " ")
      select(cursor, event.key === " " || adding(event));
    else if (event.ctrlKey || event.metaKey) return;
    else if (event.key === "l") selectLine(cursor, true, true);
    else if (event.key === "h") selectLine(cursor, false, true);
    else return;
    event.preventDefault();
    event.stopPropagation(); // else JupyterLab moves to another cell
  };
  plot.addEventListener("keydown", press, { signal });
}
