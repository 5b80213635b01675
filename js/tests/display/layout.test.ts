// Cells that can be seen, and maps that fit, in any width.

import { describe, expect, it } from "vitest";
import { arrange, layoutOf, SPACE } from "../../display/layout";
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
            for (const legend of [true, false]) {
              const beside = legend ? (width < 620 ? 0 : SPACE.legend) : SPACE.bar;
              const got = arrange({ width, ratio, across, down, maps, columns, beside });
              const where = JSON.stringify({ width, ratio, maps, columns, legend, got });
              if (!Number.isInteger(got.cellWidth) || !Number.isInteger(got.cellHeight))
                expect.fail(`no whole ${where}`);
              if (Math.min(got.cellWidth, got.cellHeight) < 1)
                expect.fail(`cells of nothing ${where}`);
              if (Math.min(got.cellWidth, got.cellHeight) / ratio < 0.8)
                expect.fail(`cells too small to see ${where}`);
              const each = (got.cellWidth * across) / ratio + SPACE.tickLabels;
              const used =
                got.columns * each + (got.columns - 1) * SPACE.gap + SPACE.axisLabel + beside;
              if (used > width + 1e-9) expect.fail(`${used} is too wide ${where}`);
              if (!(got.columns >= 1 && got.columns <= maps)) expect.fail(`columns ${where}`);
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
  it("leaves room for a legend beside the maps, on a narrow page below them", () => {
    const wide = (legend: number, width: number) => of("x", legend, width).cellWidth;
    expect(wide(5, 625)).toBeLessThan(wide(0, 625));
    expect(wide(5, 615)).toBeGreaterThan(wide(0, 615));
  });
});
