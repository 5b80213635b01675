// How big a cell is and how many maps stand side by side, from the width there is.

import { layerLabel, type Scores } from "../scores/head_scores";
import { SIXES, ticks } from "./scales";
import type { Picture } from "./views/picture";

/** Space around the maps, in CSS pixels; css/maps.css has the same numbers. */
export const SPACE = {
  axisLabel: 20,
  tickLabels: 24,
  /** Between tasks, and between the maps of one task. */
  gap: 16,
  inner: 8,
  /** Beside the maps. */
  bar: 74,
  legend: 174,
  /** Else; the outlines of selected heads stand out so far. */
  edge: 4,
  /** Above and below the cells of a map: its title, its ticks, and the gap to the next row. */
  around: 62,
} as const;

/** Narrower than this, the colour bar or the legend stands above the maps. */
const BAR_ABOVE = 480;
const LEGEND_ABOVE = 1000;

const LARGEST_CELL = 40;
const LARGEST_ALONE = 48; // of one map alone
const WIDEST = 2.5; // a cell is at most this many times as wide as high, or as high as wide
const FLAT = 140; // CSS pixels; maps lower than this get taller cells
const SLIM = 100; // CSS pixels; of long grids, maps narrower than this get taller cells
const TALLER = 1.7;
const NARROW = 400; // CSS pixels; maps narrower than this get wider cells
/** CSS pixels that a task takes at least where columns are chosen: for its name and its counts. */
const LEAST = 80;
const LEAST_IN_GROUP = 58;
const SCREEN = 550; // CSS pixels that all maps may be high before they cost more
/** Maps narrower than this have their counts in a line of their own. */
const STACKED = 190;
/** About how wide a letter of a task's name is, and what is counted beside it, in CSS pixels. */
export const NAME_LETTER = 7.4;
const COUNTS = 112;

export interface Layout {
  /** Tasks side by side; each has `span` maps, or 1 where there is no room for more. */
  readonly columns: number;
  readonly span: number;
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
  /** How many tasks there are, or maps where each stands by itself. */
  readonly maps: number;
  /** Maps of one task, which stay side by side. */
  readonly span?: number;
  /** Tasks side by side, where there is room for them; null: choose. */
  readonly columns: number | null;
  /** What stands at the right of the maps. */
  readonly beside: number;
  /** CSS pixels that a map may be high, where that is not by how many there are. */
  readonly tallest?: number | undefined;
}

/** Fit maps of `down` x `across` cells into the room there is. */
export function arrange(room: Room): Layout {
  const { width, across, maps, columns: wanted, beside, span = 1 } = room;
  const free = Math.max(80, width - beside - SPACE.axisLabel);
  const tasks = Math.max(1, maps);
  /** CSS pixels for a map, with so many tasks side by side. */
  const each = (columns: number): number =>
    ((free + SPACE.gap) / columns - SPACE.gap - SPACE.tickLabels - (span - 1) * SPACE.inner) / span;
  const most = (least: number): number => {
    let columns = 1;
    while (columns < tasks && each(columns + 1) >= least) columns++;
    return columns;
  };
  const smallest = across > 96 ? 2 : 3;
  // Where not even one task has room for its maps, each map stands by itself.
  if (span > 1 && each(1) < 2 * across) return arrange({ ...room, span: 1, maps: maps * span });
  const cells = Math.max(2, Math.min(smallest, Math.ceil(90 / across))) * across;
  const layout = (columns: number): Layout =>
    cellsIn(room, each(columns), columns, Math.ceil(tasks / columns), span);
  if (wanted !== null) return layout(Math.min(wanted, most(cells)));
  const legible = Math.max((across < 48 ? 3 : 2) * across, span > 1 ? LEAST_IN_GROUP : LEAST);
  let best = layout(1);
  let worth = worthOf(best, tasks);
  for (let columns = 2; columns <= most(legible); columns++) {
    // Balanced: 8 maps where 5 would fit stand 4 and 4.
    if (Math.ceil(tasks / Math.ceil(tasks / columns)) < columns) continue;
    const next = layout(columns);
    const worthOfNext = worthOf(next, tasks);
    if (worthOfNext > worth) [best, worth] = [next, worthOfNext];
  }
  return best;
}

/** As large as cells can be where a map has `each` CSS pixels and stands in one of `rows`. */
function cellsIn(
  { ratio, across, down, maps, tallest: high }: Room,
  each: number,
  columns: number,
  rows: number,
  span: number,
): Layout {
  const alone = maps === 1 && span === 1;
  const largest = alone ? LARGEST_ALONE : LARGEST_CELL;
  // What is above the maps and all rows of them fit a screen where they can.
  const wide = (each + SPACE.tickLabels) * columns * span;
  const row = alone ? clamp(0.6 * wide, 480, 640) : clamp(0.54 * wide, 400, 460);
  const tallest = high ?? (rows > 2 ? 192 : rows > 1 ? 240 : row);
  const whole = (pixels: number): number => Math.max(1, Math.floor(pixels * ratio));
  let cellWidth = whole(Math.min(each / across, largest));
  let cellHeight = Math.max(Math.ceil(2 * ratio), whole(Math.min(tallest / down, largest)));
  if (down * 3 > tallest) cellHeight = Math.max(cellHeight, Math.min(cellWidth, whole(3)));
  // Cells are square where they can be; flat maps may have taller ones, narrow maps wider ones.
  const flat = Math.min(FLAT, (cellWidth * across) / ratio);
  const slim = (cellWidth * across) / ratio < SLIM && down >= 2 * across;
  const taller = slim
    ? Math.floor(cellWidth * TALLER)
    : Math.min(Math.floor(cellWidth * WIDEST), whole(flat / down));
  cellHeight = Math.min(cellHeight, Math.max(cellWidth, taller));
  const wider = Math.min(Math.floor(cellHeight * WIDEST), whole(NARROW / across));
  cellWidth = Math.min(cellWidth, Math.max(cellHeight, wider));
  return { columns, span, cellWidth, cellHeight, ratio, across, down };
}

/**
 * What an arrangement is worth: cells that are easily seen and pointed at, less the height that
 * they take, most of all beyond a screen's, less the places that stay empty.
 */
function worthOf({ columns, cellWidth, cellHeight, ratio, down }: Layout, tasks: number): number {
  const rows = Math.ceil(tasks / columns);
  const height = rows * ((cellHeight * down) / ratio + SPACE.around);
  const size = Math.min(cellWidth / ratio, cellHeight / ratio, 12);
  const empty = 1 - tasks / (rows * columns);
  return Math.log(size) - height / 1000 - Math.max(0, height - SCREEN) / 100 - empty;
}

const clamp = (value: number, low: number, high: number): number =>
  Math.max(low, Math.min(high, value));

/** Does the colour bar or the legend stand above the maps, where the room is narrow? */
export const isAbove = (width: number, { legend }: Pick<Picture, "legend">): boolean =>
  width < (legend.length ? LEGEND_ABOVE : BAR_ABOVE);

/** The size of a map in CSS pixels. */
export const mapSize = ({
  cellWidth,
  cellHeight,
  across,
  down,
  ratio,
}: Layout): readonly [number, number] => [
  (cellWidth * across) / ratio,
  (cellHeight * down) / ratio,
];

/** Do counts stand in a line of their own, below names that have no room for them? */
export function isStacked(layout: Layout, names: readonly string[] = []): boolean {
  const longest = Math.max(0, ...names.map((name) => name.length));
  const room = Math.max(STACKED, longest * NAME_LETTER + COUNTS);
  return layout.span > 1 || mapSize(layout)[0] < room;
}

/** The room there is, and the grid that is drawn in it. */
export interface Space {
  readonly width: number;
  readonly ratio: number;
  readonly scores: Pick<Scores, "layers" | "heads"> | null;
}

/** Cells across and down of a map. */
export function sidesOf(
  { scores }: Pick<Space, "scores">,
  { layersOn }: Pick<Picture, "layersOn">,
): readonly [number, number] {
  const [layers, heads] = [scores?.layers.length ?? 1, scores?.heads ?? 1];
  return layersOn === "y" ? [heads, layers] : [layers, heads];
}

/** The layout of what is shown. */
export function layoutOf({ width, ratio, scores }: Space, picture: Picture): Layout {
  const { panels, columns, legend, tallest, slots, span = 1 } = picture;
  const [across, down] = sidesOf({ scores }, picture);
  const beside = isAbove(width, picture) ? SPACE.edge : legend.length ? SPACE.legend : SPACE.bar;
  const maps = slots ? 1 + Math.max(-1, ...slots.map(([task]) => task)) : panels.length;
  return arrange({ width, ratio, across, down, maps, span, columns, beside, tallest });
}

/** The row and column of every panel in a layout. */
export function slotsOf(
  { slots, panels }: Pick<Picture, "slots" | "panels">,
  { columns, span }: Pick<Layout, "columns" | "span">,
): readonly (readonly [number, number])[] {
  const tasks = (span > 1 && slots) || panels.map((_, i) => [i, 0] as const);
  return tasks.map(
    ([task, place]) => [Math.floor(task / columns), (task % columns) * span + place] as const,
  );
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
