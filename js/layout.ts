// How big a cell is and how many maps stand side by side, from the width there is.

/** Space around the maps, in CSS pixels; theme.css has the same numbers. */
export const SPACE = { axisLabel: 20, tickLabels: 24, gap: 20, bar: 78 } as const;

const PREFERRED = 150; // width of a map when there are many, in CSS pixels
const LARGEST_CELL = 28;
const WIDEST = 2; // a cell is at most this many times as wide as high

export interface Layout {
  readonly columns: number;
  /** The size of a cell in device pixels: whole numbers, so that every cell is as large as its neighbour. */
  readonly cellWidth: number;
  readonly cellHeight: number;
  readonly ratio: number;
}

/** Fit `maps` maps of `layers` x `heads` cells into `width` CSS pixels on a screen with `ratio` device pixels each. */
export function arrange(width: number, ratio: number, layers: number, heads: number, maps: number): Layout {
  const room = Math.max(80, width - SPACE.bar - SPACE.axisLabel);
  const around = SPACE.tickLabels + SPACE.gap;
  const smallest = heads > 96 ? 2 : 3;
  const preferred = Math.min(LARGEST_CELL, Math.max(smallest, Math.ceil(PREFERRED / heads))) * heads;
  const most = Math.max(1, Math.min(maps, Math.floor((room + SPACE.gap) / (preferred + around))));
  const rows = Math.ceil(Math.max(1, maps) / most);
  const columns = Math.max(1, Math.ceil(maps / rows)); // 8 maps where 5 would fit: 4 and 4
  const each = (room + SPACE.gap) / columns - around;
  const tallest = rows > 1 ? 320 : 400;
  const whole = (pixels: number): number => Math.max(1, Math.floor(pixels * ratio));
  let cellWidth = whole(Math.min(each / heads, LARGEST_CELL));
  const cellHeight = Math.min(cellWidth, Math.max(Math.ceil(2 * ratio), whole(tallest / layers)));
  cellWidth = Math.min(cellWidth, Math.max(1, Math.floor(cellHeight * WIDEST)));
  return { columns, cellWidth, cellHeight, ratio };
}
