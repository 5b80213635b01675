// How big a cell is and how many maps stand side by side, from the width there is.

import { layerLabel, type Scores } from "../scores/head_scores";
import { SIXES, ticks } from "./scales";
import type { Picture } from "./views/picture";

/** Space around the maps, in CSS pixels; css/maps.css has the same numbers. */
export const SPACE = { axisLabel: 20, tickLabels: 24, gap: 20, bar: 78, legend: 174 } as const;

const PREFERRED = 150; // width of a map when there are many, in CSS pixels
const LARGEST_CELL = 28;
const WIDEST = 2; // a cell is at most this many times as wide as high, or as high as wide
const FLAT = 140; // CSS pixels; maps lower than this get taller cells
const NARROW = 260; // CSS pixels; maps narrower than this get wider cells

export interface Layout {
  readonly columns: number;
  /** The size of a cell in device pixels: whole numbers, so that all cells are of one size. */
  readonly cellWidth: number;
  readonly cellHeight: number;
  readonly ratio: number;
  /** Cells across and down: layers and heads, or the other way round. */
  readonly across: number;
  readonly down: number;
}

interface Room {
  /** CSS pixels for maps and all around them. */
  readonly width: number;
  /** Device pixels in a CSS pixel. */
  readonly ratio: number;
  readonly across: number;
  readonly down: number;
  readonly maps: number;
  /** Maps side by side, where there is room for them; null: choose. */
  readonly columns: number | null;
  /** What stands at the right of the maps. */
  readonly beside: number;
  /** CSS pixels that a map may be high, where that is not by how many there are. */
  readonly tallest?: number | undefined;
}

/** Fit `maps` maps of `down` x `across` cells into the room there is. */
export function arrange({
  width,
  ratio,
  across,
  down,
  maps,
  columns: wanted,
  beside,
  tallest: high,
}: Room): Layout {
  const room = Math.max(80, width - beside - SPACE.axisLabel);
  const around = SPACE.tickLabels + SPACE.gap;
  const smallest = across > 96 ? 2 : 3;
  const least = Math.max(2, Math.min(smallest, Math.ceil(90 / across))) * across;
  const preferred =
    Math.min(LARGEST_CELL, Math.max(smallest, Math.ceil(PREFERRED / across))) * across;
  const fits = (size: number): number =>
    Math.max(1, Math.floor((room + SPACE.gap) / (size + around)));
  const most = Math.min(
    Math.max(1, maps),
    wanted === null ? fits(preferred) : Math.min(wanted, fits(least)),
  );
  const rows = Math.ceil(Math.max(1, maps) / most);
  // Balanced: 8 maps where 5 would fit stand 4 and 4.
  const columns = wanted === null ? Math.max(1, Math.ceil(maps / rows)) : most;
  const each = (room + SPACE.gap) / columns - around;
  const tallest = high ?? (maps === 1 ? 560 : rows > 2 ? 240 : rows > 1 ? 320 : 400);
  const whole = (pixels: number): number => Math.max(1, Math.floor(pixels * ratio));
  let cellWidth = whole(Math.min(each / across, LARGEST_CELL));
  let cellHeight = Math.max(Math.ceil(2 * ratio), whole(Math.min(tallest / down, LARGEST_CELL)));
  // Cells are square where they can be; flat maps may have taller ones, narrow maps wider ones.
  const taller = Math.min(cellWidth * WIDEST, whole(FLAT / down));
  cellHeight = Math.min(cellHeight, Math.max(cellWidth, taller));
  const wider = Math.min(cellHeight * WIDEST, whole(NARROW / across));
  cellWidth = Math.min(cellWidth, Math.max(cellHeight, wider));
  return { columns, cellWidth, cellHeight, ratio, across, down };
}

/** The room there is, and the grid that is drawn in it. */
export interface Space {
  readonly width: number;
  readonly ratio: number;
  readonly scores: Pick<Scores, "layers" | "heads"> | null;
}

/** The layout of what is shown. */
export function layoutOf(
  { width, ratio, scores }: Space,
  { panels, layersOn, columns, legend, tallest }: Picture,
): Layout {
  const [layers, heads] = [scores?.layers.length ?? 1, scores?.heads ?? 1];
  const [across, down] = layersOn === "y" ? [heads, layers] : [layers, heads];
  const beside = legend.length ? (width < 620 ? 0 : SPACE.legend) : SPACE.bar;
  return arrange({ width, ratio, across, down, maps: panels.length, columns, beside, tallest });
}

/** The row and column of every panel: as the view fixes them where they fit, else in order. */
export function slotsOf(
  { slots, columns: wanted, panels }: Picture,
  columns: number,
): readonly (readonly [number, number])[] {
  if (slots && columns === wanted) return slots;
  return panels.map((_, i) => [Math.floor(i / columns), i % columns] as const);
}

/** Where an axis has ticks, in CSS pixels, and their text. */
export function axisTicks(
  { cellWidth, cellHeight, ratio, across, down }: Layout,
  { layersOn, layerTicks }: Picture,
  scores: Pick<Scores, "layers" | "sections">,
  side: "top" | "left",
): [number, string][] {
  const [count, size, apart] = side === "top" ? [down, cellHeight, 14] : [across, cellWidth, 20];
  const isLayers = (side === "top") === (layersOn === "y");
  return ticks(count, isLayers ? layerTicks : SIXES, size / ratio, apart).map((i) => [
    ((i + 0.5) * size) / ratio,
    isLayers ? layerLabel(scores, i) : String(i),
  ]);
}
