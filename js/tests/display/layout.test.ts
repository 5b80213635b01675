// Cells that can be seen, and maps that fit, in any width.

import { describe, expect, it } from "vitest";
import {
  arrange,
  isAbove,
  isStacked,
  layoutOf,
  mapSize,
  SPACE,
  slotsOf,
} from "../../display/layout";
import type { Picture } from "../../display/views/picture";

const GRIDS = [
  [1, 1],
  [12, 12],
  [30, 9],
  [48, 32],
  [80, 64],
  [126, 128],
] as const;
const WIDTHS = [320, 333, 480, 619, 620, 800, 1000, 1279, 1600];

describe.each(GRIDS)("maps of %i x %i", (layers, heads) => {
  it.each(["y", "x"] as const)("fit with whole cells, layers on %s", (layersOn) => {
    const [across, down] = layersOn === "y" ? [heads, layers] : [layers, heads];
    for (const width of WIDTHS) {
      for (const ratio of [1, 1.25, 1.5, 2, 3]) {
        for (let maps = 1; maps <= 20; maps++) {
          for (const columns of [null, 1, 2, 3, 20]) {
            for (const span of [1, 2, 3]) {
              const beside = span > 1 && width < 620 ? 0 : SPACE.bar;
              const got = arrange({ width, ratio, across, down, maps, span, columns, beside });
              const where = JSON.stringify({ width, ratio, maps, columns, span, got });
              if (!Number.isInteger(got.cellWidth) || !Number.isInteger(got.cellHeight))
                expect.fail(`no whole ${where}`);
              if (Math.min(got.cellWidth, got.cellHeight) < 1)
                expect.fail(`cells of nothing ${where}`);
              if (Math.min(got.cellWidth, got.cellHeight) / ratio < 0.8)
                expect.fail(`cells too small to see ${where}`);
              const cells = (got.span * got.cellWidth * across) / ratio;
              const each = cells + (got.span - 1) * SPACE.inner + SPACE.tickLabels;
              const used =
                got.columns * each + (got.columns - 1) * SPACE.gap + SPACE.axisLabel + beside;
              if (used > width + 1e-9) expect.fail(`${used} is too wide ${where}`);
              if (!(got.columns >= 1 && got.columns <= maps * span))
                expect.fail(`columns ${where}`);
              if (columns !== null && got.columns > columns)
                expect.fail(`more columns than asked for ${where}`);
            }
          }
        }
      }
    }
  });
});

describe("columns", () => {
  const room = { ratio: 1, across: 12, down: 12, maps: 8, beside: SPACE.bar };
  it("are as asked for where there is room", () => {
    for (const columns of [1, 2, 3, 4, 5, 6, 7, 8]) {
      expect(arrange({ ...room, width: 1600, columns }).columns).toBe(columns);
    }
    // No more than there are maps, and no more than fit.
    expect(arrange({ ...room, width: 1600, columns: 20 }).columns).toBe(8);
    expect(arrange({ ...room, width: 320, columns: 8 }).columns).toBeLessThan(8);
  });
  it("are balanced: 8 maps where 5 fit stand 4 and 4", () => {
    for (const [width, across, down] of [
      [1150, 32, 32],
      [900, 32, 48],
    ] as const) {
      expect(arrange({ ...room, width, across, down, columns: null }).columns).toBe(4);
    }
  });
  it("never leave a last row empty", () => {
    for (const width of WIDTHS) {
      for (let maps = 1; maps <= 20; maps++) {
        const { columns } = arrange({ ...room, width, maps, columns: null });
        expect(Math.ceil(maps / columns)).toBe(Math.ceil(maps / Math.min(maps, columns)));
        expect((Math.ceil(maps / columns) - 1) * columns).toBeLessThan(maps);
      }
    }
  });
  it("hold without any map", () => {
    expect(arrange({ ...room, width: 800, maps: 0, columns: null }).columns).toBe(1);
  });
});

describe("the layout of a picture", () => {
  const of = (layersOn: "y" | "x", legend: number, width = 1000) =>
    layoutOf(
      { width, ratio: 2, scores: { layers: Array.from({ length: 30 }, (_, i) => i), heads: 9 } },
      {
        panels: [1, 2],
        layersOn,
        columns: null,
        legend: Array.from({ length: legend }),
      } as unknown as Picture,
    );
  it("has the layers where the picture says", () => {
    expect(of("y", 0)).toMatchObject({ across: 9, down: 30, ratio: 2 });
    expect(of("x", 5)).toMatchObject({ across: 30, down: 9 });
  });
  it("leaves room for what stands beside the maps, unless it stands above them", () => {
    expect([isAbove(999, few), isAbove(1000, few)]).toEqual([true, false]);
    expect([isAbove(479, none), isAbove(480, none)]).toEqual([true, false]);
    const used = (legend: number, width: number): number => {
      const { columns, span, ...rest } = of("x", legend, width);
      const each = SPACE.tickLabels + span * mapSize({ columns, span, ...rest })[0];
      return SPACE.axisLabel + columns * each + (columns - 1) * SPACE.gap;
    };
    for (let width = 320; width < 1400; width += 7) {
      expect(used(5, width)).toBeLessThanOrEqual(width - (width < 1000 ? 0 : SPACE.legend));
      expect(used(0, width)).toBeLessThanOrEqual(width - (width < 480 ? 0 : SPACE.bar));
    }
  });
});

const none = { legend: [] };
const few = { legend: [{ name: "a", count: 1 }] };

/** Tasks in the widths that a lab, a notebook and a phone leave, and how high they stand. */
function shown(layers: number, heads: number, maps: number, width: number, span = 1) {
  const beside = isAbove(width, none) ? 0 : SPACE.bar;
  const layout = arrange({
    ...{ width, ratio: 1, across: heads, down: layers, maps, span, columns: null, beside },
  });
  const [w, h] = mapSize(layout);
  const rows = Math.ceil(maps / layout.columns);
  const each = SPACE.tickLabels + span * w + (span - 1) * SPACE.inner;
  return {
    ...layout,
    rows,
    mapHeight: h,
    wide: SPACE.axisLabel + layout.columns * each + (layout.columns - 1) * SPACE.gap + beside,
    high: rows * (h + SPACE.around),
  };
}

describe("what a lab leaves for its maps", () => {
  it("is filled by two tasks of 30 x 9, on one screen", () => {
    const two = shown(30, 9, 2, 560);
    expect(two.rows).toBe(1);
    expect(two.wide).toBeGreaterThan(540);
    expect(two.mapHeight).toBeLessThanOrEqual(400);
    expect(two.high).toBeLessThanOrEqual(470);
  });
  it("is used by larger cells where it is wide, still on one screen", () => {
    const two = shown(30, 9, 2, 952); // of a widget of 1380
    expect(two.wide).toBeGreaterThan(780);
    expect(two.mapHeight).toBeLessThanOrEqual(450); // all else of a lab takes 310
  });
  it("has counts below names that leave no room for them", () => {
    const two = shown(30, 9, 2, 560);
    expect(isStacked(two, ["Math", "Syntax"])).toBe(false);
    expect(isStacked(two, ["Math", "Syntactic Understanding"])).toBe(true);
  });
  it("shows eight tasks at once", () => {
    for (const width of [560, 640, 980]) {
      expect(shown(30, 9, 8, width).high, `${width}`).toBeLessThanOrEqual(620);
      expect(shown(12, 12, 8, width).high, `${width}`).toBeLessThanOrEqual(620);
    }
  });
  it("has cells to be seen and pointed at", () => {
    for (const width of [360, 560, 640, 980]) {
      for (const maps of [1, 2, 8, 20]) {
        for (const [layers, heads, least] of [
          [30, 9, 5],
          [12, 12, 5],
          [32, 32, 3],
          [80, 64, 2],
        ] as const) {
          const { cellWidth, cellHeight } = shown(layers, heads, maps, width);
          const where = `${maps} of ${layers} x ${heads} in ${width}`;
          expect(Math.min(cellWidth, cellHeight), where).toBeGreaterThanOrEqual(least);
        }
      }
    }
  });
  it("has one task as large as there is room", () => {
    const [one, two] = [shown(30, 9, 1, 560), shown(30, 9, 2, 560)];
    expect(one.cellWidth * one.cellHeight).toBeGreaterThan(1.5 * two.cellWidth * two.cellHeight);
    expect(one.high).toBeLessThanOrEqual(560);
  });
});

describe("the maps of one task", () => {
  const panels = Array.from({ length: 6 }) as Picture["panels"];
  const pairs = [0, 1, 2].flatMap((task) => [[task, 0] as const, [task, 1] as const]);
  it("stay side by side, and tasks wrap over the width", () => {
    const slots = slotsOf({ slots: pairs, panels }, { columns: 2, span: 2 });
    expect(slots).toEqual([
      ...([
        [0, 0],
        [0, 1],
        [0, 2],
        [0, 3],
      ] as const),
      ...([
        [1, 0],
        [1, 1],
      ] as const),
    ]);
    expect(slotsOf({ slots: null, panels }, { columns: 4, span: 1 })[5]).toEqual([1, 1]);
  });
  it("stand by themselves where one task has no room for them", () => {
    const two = shown(126, 128, 3, 480, 3);
    expect(two).toMatchObject({ span: 1, columns: 1 });
    expect(slotsOf({ slots: pairs, panels }, two)[5]).toEqual([5, 0]);
  });
  it("fill the width where there are many, and have their counts below the name", () => {
    const eight = shown(30, 9, 8, 980, 2);
    expect([eight.columns, eight.rows]).toEqual([4, 2]);
    expect(eight.wide).toBeGreaterThan(850);
    expect(isStacked(eight)).toBe(true);
    expect(isStacked(shown(30, 9, 1, 560))).toBe(false);
  });
});
