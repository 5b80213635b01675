// What is drawn over the cells: outlines of selected heads, the cross hair, the head pointed at,
// the box, and heads that are changed.

import type { Layout } from "../display/layout";
import { selectedCells } from "../display/selection";
import type { Cell } from "../scores/head_scores";
import type { MapState } from "../state";

/** CSS pixels that outlines may reach beyond the map. */
export const MARGIN = 4;

/** Outlines that show on any colour: white on black. */
export function drawMarks(
  canvas: HTMLCanvasElement,
  state: MapState,
  layout: Layout,
  layersOn: "y" | "x",
): void {
  const { cellWidth, cellHeight, ratio, across, down } = layout;
  const pen = canvas.getContext("2d")!;
  pen.setTransform(1, 0, 0, 1, 0, 0);
  pen.clearRect(0, 0, canvas.width, canvas.height);
  pen.translate(Math.round(MARGIN * ratio), Math.round(MARGIN * ratio));
  const line = Math.max(1, Math.round(ratio));
  const corner = ({ row, head }: Cell): [number, number] =>
    layersOn === "y" ? [head * cellWidth, row * cellHeight] : [row * cellWidth, head * cellHeight];

  /** Frames around cells, `out` pixels outside of them, in one stroke: there may be thousands. */
  const frames = (boxes: readonly (readonly [Cell, Cell])[], out: number, colour: string): void => {
    pen.beginPath();
    for (const [a, b] of boxes) {
      const [[x1, y1], [x2, y2]] = [corner(a), corner(b)];
      const [x, y] = [Math.min(x1, x2) - out + line / 2, Math.min(y1, y2) - out + line / 2];
      const [w, h] = [Math.abs(x1 - x2) + cellWidth, Math.abs(y1 - y2) + cellHeight];
      pen.rect(x, y, w + 2 * out - line, h + 2 * out - line);
    }
    pen.lineWidth = line;
    pen.strokeStyle = colour;
    pen.stroke();
  };
  const ring = (boxes: readonly (readonly [Cell, Cell])[], inner: string, outer: string): void => {
    frames(boxes, 2 * line, outer);
    frames(boxes, line, inner);
  };

  const selected = selectedCells(state).map((cell) => [cell, cell] as const);
  ring(selected, "#fff", "#000");
  const { point, box } = state;
  if (point) {
    pen.fillStyle = "rgba(128, 128, 128, 0.55)"; // a cross hair, to read the ticks by
    const [x, y] = corner(point);
    pen.fillRect(0, y + Math.floor(cellHeight / 2), cellWidth * across, line);
    pen.fillRect(x + Math.floor(cellWidth / 2), 0, line, cellHeight * down);
    pen.clearRect(x, y, cellWidth, cellHeight);
    ring([[point, point]], "#000", "#fff");
  }
  if (box) {
    pen.setLineDash([4 * line, 3 * line]);
    ring([box], "#fff", "#000");
    pen.setLineDash([]);
  }
  drawChanged(pen, state, layout, corner);
}

const LEAST_NAMED = 15; // CSS pixels that a cell must be wide and high for its factor to be read

/** A cross over a head that is off; a ring, and its factor where there is room, over a scaled one. */
function drawChanged(
  pen: CanvasRenderingContext2D,
  { changed, scores }: MapState,
  { cellWidth, cellHeight, ratio }: Layout,
  corner: (cell: Cell) => [number, number],
): void {
  const radius = Math.max(2 * ratio, Math.min(cellWidth, cellHeight) / 2 - ratio);
  for (const [layer, head, factor] of changed) {
    const row = scores?.layers.indexOf(layer) ?? -1;
    if (row < 0) continue;
    const [left, top] = corner({ row, head });
    const [x, y] = [left + cellWidth / 2, top + cellHeight / 2];
    pen.beginPath();
    if (factor === 0) {
      const arm = radius * 0.8;
      pen.moveTo(x - arm, y - arm);
      pen.lineTo(x + arm, y + arm);
      pen.moveTo(x + arm, y - arm);
      pen.lineTo(x - arm, y + arm);
    } else pen.ellipse(x, y, radius, radius, 0, 0, 2 * Math.PI);
    // White below black shows on any colour.
    for (const [colour, width] of [
      ["#fff", 4],
      ["#000", 1.75],
    ] as const) {
      pen.strokeStyle = colour;
      pen.lineWidth = width * ratio;
      pen.stroke();
    }
    if (factor === 0 || Math.min(cellWidth, cellHeight) < LEAST_NAMED * ratio) continue;
    pen.font = `600 ${Math.round(9 * ratio)}px sans-serif`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.strokeStyle = "#fff";
    pen.lineWidth = 3 * ratio;
    pen.strokeText(String(factor), x, y);
    pen.fillStyle = "#000";
    pen.fillText(String(factor), x, y);
  }
}
