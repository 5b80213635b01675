// One task's map of layer x head: cells, ticks, title, and the outlines of selected and pointed-at heads.

import { pixels, ramp, stops, ticks } from "../scales";
import { type Cell, type Change, headAt, layoutOf, type Panel, passing, type Store, toggled } from "../store";
import type { Scores, TaskScores } from "../wire";
import { all, make } from "./dom";

const MARGIN = 4; // CSS pixels that outlines may reach beyond the map
const SIZE: Change[] = ["width", "ratio", "scores", "tasks"];
const DIMMED = 0.13; // opacity of a head below the threshold

/** A panel for the task of that name. */
export function heatmap(name: string): Panel {
  return (el, store) => {
    const title = make("span", "map-name", name);
    title.title = name;
    const count = make("span", "map-count");
    const cells = make("canvas", "cells");
    const marks = make("canvas", "marks");
    const plot = make("div", "plot", cells, marks);
    plot.tabIndex = 0;
    plot.setAttribute("role", "application");
    plot.dataset.task = name;
    const rows = make("div", "ticks-y");
    const columns = make("div", "ticks-x");
    el.append(
      make("figcaption", "map-title", title, count),
      make("div", "label-y", "Layer"),
      rows,
      plot,
      columns,
      make("div", "label-x", "Head"),
    );

    let bright: Uint32Array = new Uint32Array(); // the colour map as pixels, and the same dimmed
    let dim = bright;
    const colour = (): void => {
      const { scores, scheme } = store.state;
      const colours = ramp(stops(scores?.signed ?? false, scheme));
      [bright, dim] = [pixels(colours, 1), pixels(colours, DIMMED)];
    };
    const draw = (): void => {
      const { state } = store;
      const task = state.scores?.tasks.find((t) => t.name === name);
      if (!state.scores || !task) return;
      const passes = passing(state, task);
      count.textContent = passes ? `${passes.reduce((sum, one) => sum + one, 0)} pass` : "";
      paint(cells, state.scores, task, state.range, passes, bright, dim);
    };
    const resize = (): void => {
      const { scores } = store.state;
      if (!scores) return;
      const { cellWidth, cellHeight, ratio } = layoutOf(store.state);
      const [width, height] = [(cellWidth * scores.heads) / ratio, (cellHeight * scores.layers.length) / ratio];
      marks.width = Math.round((width + 2 * MARGIN) * ratio);
      marks.height = Math.round((height + 2 * MARGIN) * ratio);
      const tick = (at: number, text: string, side: "left" | "top", size: number): HTMLElement => {
        const label = make("span", "tick", text);
        label.style[side] = `${((at + 0.5) * size) / ratio}px`;
        return label;
      };
      const down = ticks(scores.layers.length, cellHeight / ratio, 14);
      rows.replaceChildren(...down.map((row) => tick(row, String(scores.layers[row]), "top", cellHeight)));
      const across = ticks(scores.heads, cellWidth / ratio, 20);
      columns.replaceChildren(...across.map((head) => tick(head, String(head), "left", cellWidth)));
    };
    const mark = (): void => {
      const { scores, selected } = store.state;
      outline(marks, store);
      const size = `${scores?.layers.length} layers by ${scores?.heads} heads, ${selected.length} selected`;
      plot.setAttribute("aria-label", `${name}: ${size}. Arrow keys move, Enter selects, Escape clears.`);
    };

    const own = new AbortController();
    listen(plot, store, own.signal);
    resize();
    colour();
    draw();
    mark();
    const stop = store.subscribe((changed) => {
      const sized = SIZE.some((what) => changed.has(what));
      if (sized) resize();
      if (changed.has("scores") || changed.has("scheme")) colour();
      if (["scores", "threshold", "scheme"].some((what) => changed.has(what as Change))) draw();
      if (sized || changed.has("hover") || changed.has("selected")) mark();
    });
    return all(stop, () => own.abort());
  };
}

/** One pixel a cell; the browser enlarges it by whole device pixels without smoothing. */
function paint(
  canvas: HTMLCanvasElement,
  scores: Scores,
  task: TaskScores,
  range: { low: number; high: number },
  passes: Uint8Array | null,
  bright: Uint32Array,
  dim: Uint32Array,
): void {
  canvas.width = scores.heads;
  canvas.height = scores.layers.length;
  const image = new ImageData(canvas.width, canvas.height);
  const out = new Uint32Array(image.data.buffer);
  const scale = 255 / (range.high - range.low);
  for (let i = 0; i < out.length; i++) {
    const step = Math.max(0, Math.min(255, Math.round((task.mean[i]! - range.low) * scale)));
    out[i] = (passes && !passes[i] ? dim : bright)[step]!;
  }
  canvas.getContext("2d")!.putImageData(image, 0, 0);
}

/** Outlines that show on any colour: white on black. */
function outline(canvas: HTMLCanvasElement, store: Store): void {
  const { scores, selected, hover } = store.state;
  const pen = canvas.getContext("2d")!;
  const { cellWidth, cellHeight, ratio } = layoutOf(store.state);
  pen.setTransform(1, 0, 0, 1, 0, 0);
  pen.clearRect(0, 0, canvas.width, canvas.height);
  pen.translate(Math.round(MARGIN * ratio), Math.round(MARGIN * ratio));
  if (!scores) return;
  const line = Math.max(1, Math.round(ratio));
  const box = (cell: Cell, out: number, colour: string): void => {
    pen.fillStyle = colour;
    const [x, y] = [cell.head * cellWidth - out, cell.row * cellHeight - out];
    const [w, h] = [cellWidth + 2 * out, cellHeight + 2 * out];
    pen.fillRect(x, y, w, line);
    pen.fillRect(x, y + h - line, w, line);
    pen.fillRect(x, y, line, h);
    pen.fillRect(x + w - line, y, line, h);
  };
  const ring = (cell: Cell, inner: string, outer: string): void => {
    box(cell, 2 * line, outer);
    box(cell, line, inner);
  };
  const rowOf = new Map(scores.layers.map((layer, row) => [layer, row]));
  for (const [layer, head] of selected) {
    const row = rowOf.get(layer);
    if (row !== undefined) ring({ row, head }, "#fff", "#000");
  }
  if (!hover) return;
  pen.fillStyle = "rgba(128, 128, 128, 0.45)"; // a cross hair, to read the ticks by
  const [width, height] = [cellWidth * scores.heads, cellHeight * scores.layers.length];
  const [x, y] = [Math.floor((hover.head + 0.5) * cellWidth), Math.floor((hover.row + 0.5) * cellHeight)];
  pen.fillRect(0, y, width, line);
  pen.fillRect(x, 0, line, height);
  pen.clearRect(hover.head * cellWidth, hover.row * cellHeight, cellWidth, cellHeight);
  ring(hover, "#000", "#fff");
}

/** Pointer and keyboard: point, select, move, clear. */
function listen(plot: HTMLElement, store: Store, signal: AbortSignal): void {
  const at = (event: MouseEvent): Cell | null => {
    const { scores } = store.state;
    if (!scores) return null;
    const box = plot.getBoundingClientRect();
    const row = Math.floor(((event.clientY - box.top) / box.height) * scores.layers.length);
    const head = Math.floor(((event.clientX - box.left) / box.width) * scores.heads);
    return row >= 0 && head >= 0 && row < scores.layers.length && head < scores.heads ? { row, head } : null;
  };
  const select = (cell: Cell, add: boolean): void => {
    const { scores, selected } = store.state;
    if (scores) store.sync({ selected: toggled(selected, headAt(scores, cell), add) });
  };
  const move = (event: PointerEvent): void => {
    const cell = at(event);
    store.show(cell ? { hover: { ...cell, x: event.clientX, y: event.clientY }, cursor: cell } : { hover: null });
  };
  plot.addEventListener("pointermove", move, { signal });
  plot.addEventListener("pointerleave", () => store.show({ hover: null }), { signal });
  plot.addEventListener("blur", () => store.show({ hover: null }), { signal });
  plot.addEventListener(
    "click",
    (event) => {
      const cell = at(event);
      if (cell) select(cell, event.shiftKey || event.ctrlKey || event.metaKey);
    },
    { signal },
  );
  const steps: Record<string, [number, number]> = {
    ArrowUp: [-1, 0],
    ArrowDown: [1, 0],
    ArrowLeft: [0, -1],
    ArrowRight: [0, 1],
  };
  plot.addEventListener(
    "keydown",
    (event) => {
      const { scores, cursor, hover } = store.state;
      const step = steps[event.key];
      if (!scores || event.altKey) return;
      if (step && !event.ctrlKey && !event.metaKey) {
        const [down, right] = hover ? step : [0, 0]; // the first key shows where the cursor is
        const row = Math.max(0, Math.min(scores.layers.length - 1, cursor.row + down));
        const head = Math.max(0, Math.min(scores.heads - 1, cursor.head + right));
        const box = plot.getBoundingClientRect();
        const x = box.left + ((head + 1) / scores.heads) * box.width;
        const y = box.top + ((row + 0.5) / scores.layers.length) * box.height;
        store.show({ hover: { row, head, x, y }, cursor: { row, head } });
      } else if (event.key === "Enter" || event.key === " ") {
        select(cursor, event.shiftKey || event.ctrlKey || event.metaKey);
      } else return;
      event.preventDefault();
      event.stopPropagation(); // else JupyterLab moves to another cell
    },
    { signal },
  );
}
