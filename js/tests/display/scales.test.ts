// Colours, ranges, ticks, the slider's stops, and numbers as text.

import { describe, expect, it } from "vitest";
import palette from "../../../tests/golden/palette.json";
import golden from "../../../tests/golden/scales.json";
import {
  CATEGORIES,
  categoryColours,
  MAPS,
  pixels,
  type Rgb,
  ramp,
  stops,
} from "../../display/palette";
import {
  barTicks,
  EIGHTS,
  formatter,
  niceStep,
  parsed,
  position,
  type Range,
  rangeOf,
  SIXES,
  sliderStops,
  sortedScores,
  ticks,
  typed,
  unitOf,
} from "../../display/scales";
import type { MapName } from "../../display/settings";
import { START } from "../../scores/threshold";

const rangeFor = (values: number[], signed = false, cap: number | string | null = null): Range =>
  rangeOf(sortedScores([Float32Array.from(values)]), signed, cap);
const many = (top: number, extra: number[] = []): number[] => [
  ...Array.from({ length: 1000 }, (_, i) => (i / 999) * top),
  ...extra,
];
const labels = (values: number[], signed = false, cap: number | string | null = null): string[] =>
  barTicks(rangeFor(values, signed, cap)).map((tick) => tick.label);
const text = (colours: readonly Rgb[]): string =>
  colours.map((rgb) => rgb.map((part) => part.toString(16).padStart(2, "0")).join("")).join(" ");

describe("the colour bar", () => {
  it("ends in a plus only when scores go beyond it", () => {
    expect(labels(many(0.002))).toEqual(["0.0000", "0.0005", "0.0010", "0.0015", "0.0020"]);
    expect(labels(many(0.002, [0.5]))).toEqual(["0.0000", "0.0005", "0.0010", "0.0015", "0.0020+"]);
  });
  it("spans the same on both sides of zero for signed scores, with a plus where needed", () => {
    expect(labels(many(0.2, [-5]), true)).toEqual(["−0.2+", "−0.1", "0.0", "0.1", "0.2"]);
    const range = rangeFor([-0.3, 0.1], true);
    expect(range.low).toBe(-range.high);
  });
  it("has a range when all scores are zero, and for one score", () => {
    expect(rangeFor([0, 0]).high).toBeGreaterThan(0);
    expect(rangeFor([7])).toMatchObject({ low: 0, high: 8, highCapped: false });
  });
  it("writes very small numbers with a power of ten", () => {
    expect(labels(many(2e-7)).at(-1)).toBe("2.0e−7");
    expect(labels([-2e-7, 1e-7], true)).toEqual(["−2.0e−7", "−1.0e−7", "0", "1.0e−7", "2.0e−7"]);
  });
  it("ends at a cap that is no multiple of its step, and leaves out a step too near to it", () => {
    expect(labels(many(1), false, 0.35)).toEqual(["0.00", "0.10", "0.20", "0.35+"]);
    expect(labels(many(1), false, 0.37)).toEqual(["0.00", "0.10", "0.20", "0.30", "0.37+"]);
    expect(labels(many(1), true, 0.25)).toEqual(["−0.25", "−0.10", "0.00", "0.10", "0.25+"]);
    expect(labels(many(1), false, 2)).toEqual(["0.0", "0.5", "1.0", "1.5", "2.0"]);
  });
  it("ends at a percentile of the sizes, rounded up to a step", () => {
    expect(labels(many(1), false, "50%")).toEqual(["0.0", "0.2", "0.4", "0.6+"]);
    expect(labels(many(1), false, "100%").at(-1)).toBe("1.00");
  });
});

describe("colours", () => {
  it.each(Object.entries(palette.maps))("of %s are those of Python", (name, golden) => {
    expect(text(stops(name as MapName, "light"))).toBe(golden);
    expect(text(ramp(stops(name as MapName, "light")))).toBe(palette.ramps[name as MapName]);
    expect(Object.keys(MAPS)).toEqual(Object.keys(palette.maps));
  });
  it.each(Object.entries(palette.categories))(
    "of %s categories are those of Python",
    (count, golden) => {
      expect(text(categoryColours(Number(count), "light"))).toBe(golden);
      expect(categoryColours(Number(count), "dark")).toHaveLength(golden.split(" ").length);
    },
  );
  it("have zero in the middle of the diverging map, light on light and dark on dark pages", () => {
    const middle = (scheme: "light" | "dark"): number =>
      ramp(stops("blue-orange", scheme))[128]![0];
    expect(middle("light")).toBeGreaterThan(230);
    expect(middle("dark")).toBeLessThan(60);
    expect(stops("viridis", "dark")).toEqual(stops("viridis", "light"));
  });
  it("are as many for dark pages as for light ones", () => {
    const sizes = (["light", "dark"] as const)
      .map((scheme) => CATEGORIES[scheme])
      .map(({ single, several }) => [single.length, several.length]);
    expect(sizes[0]).toEqual(sizes[1]);
  });
  it("are pixels of red, green, blue and opacity", () => {
    expect([
      ...new Uint8Array(
        pixels(
          [
            [1, 2, 3],
            [255, 0, 9],
          ],
          0.2,
        ).buffer,
      ),
    ]).toEqual([1, 2, 3, 51, 255, 0, 9, 51]);
  });
});

describe("ticks", () => {
  it.each([
    [9, 18, [0, 2, 4, 6, 8]],
    [12, 14, [0, 2, 4, 6, 8, 10]],
    [32, 6, [0, 6, 12, 18, 24, 30]],
    [48, 6, [0, 6, 12, 18, 24, 30, 36, 42]],
    [80, 3, [0, 12, 24, 36, 48, 60, 72]],
    [1, 22, [0]],
  ])("of %i cells of %i pixels", (count, pixels, expected) => {
    expect(ticks(count, SIXES, pixels, 14)).toEqual(expected);
  });
  it("stand every 16 of 80 layers in the categories view", () => {
    expect(ticks(80, EIGHTS)).toEqual([0, 16, 32, 48, 64]);
    expect(ticks(1000, SIXES)).toEqual([0, 250, 500, 750]);
  });
});

describe("numbers", () => {
  it("have three digits of the range, and a true minus", () => {
    const format = formatter(rangeFor(many(0.2), true));
    expect([format(-0.0351), format(0.2), format(-0.00001)]).toEqual(["−0.035", "0.200", "0.000"]);
  });
  it("round to nice steps", () => {
    expect([0.00042, 0.011, 0.25, 0.3, 7].map(niceStep)).toEqual([0.0005, 0.02, 0.25, 0.5, 10]);
  });
  it("are written as a user would type them", () => {
    expect([0.30000000000000004, 0.1 + 0.2 - 0.05, 1234567, -0.5].map(typed)).toEqual([
      "0.3",
      "0.25",
      "1234570",
      "-0.5",
    ]);
  });
  it.each([
    ["0,5", 0.5],
    ["0.5", 0.5],
    ["5%", 5],
    [" 5 % ", 5],
    ["−3", -3],
    ["-3", -3],
    ["1e-3", 0.001],
    [".5", 0.5],
    ["0", 0],
    ["5.", 5],
    ["0,125", 0.125],
    ["-0,125", -0.125],
    ["1234,567", 1234.567],
    ["1,0001", 1.0001],
    ["1.000", 1],
  ])("are read as a user types them: %s", (words, value) => {
    expect(parsed(words)).toBe(value);
  });
  it.each([
    ...["abc", "", "  ", "%", "1,2,3", "5%%", "--1", "1 2", "off", "."],
    ...["0x10", "0b1", "0o7", "Infinity", "1,000", "-1,000", "12,500 %", "1,000.5"],
  ])("are not read from %s", (words) => {
    expect(parsed(words)).toBeNaN();
  });
});

describe("the threshold's slider", () => {
  const grids = [1, 2, 144, 150, 151, 270, 1024, 16128];
  const spans = [
    [0, 0.9],
    [0, 0],
    [-3, 1],
    [0, 3e-7],
    [0, 4.2e6],
    [-0.5, 0.25],
    [0, 1 / 3],
  ] as const;
  const all = grids.flatMap((heads) =>
    spans.flatMap(([low, high]) =>
      (["value", "top", "percent", "elbow"] as const).map((rule) => ({ rule, heads, low, high })),
    ),
  );
  it.each(all)(
    "has stops that grow, each at its own place: $rule, $heads heads, $low to $high",
    ({ rule, heads, low, high }) => {
      const at = sliderStops(rule, heads, low, high);
      expect(at.length).toBeGreaterThan(0);
      expect(at.length).toBeLessThanOrEqual(410);
      expect(at.every((stop, i) => i === 0 || stop > at[i - 1]!)).toBe(true);
      expect(at.map((stop) => position(at, stop))).toEqual(at.map((_, i) => i + 1));
      expect(unitOf(rule, "score")).not.toBe("");
      if (rule === "top") expect([at[0], at.at(-1)]).toEqual([1, heads]);
      // The last stop keeps the strongest head alone, or none.
      if (rule === "value") expect(at.at(-1)).toBeGreaterThanOrEqual(high);
      if (rule === "value") expect(at[0]).toBeGreaterThan(low);
    },
  );
  it("is off at its first place, and stands at the nearest stop for a number typed", () => {
    const at = sliderStops("value", 12, 0, 0.9);
    expect([at[0], at.at(-1)]).toEqual([0.0025, 0.9025]);
    expect(position(at, null)).toBe(0);
    expect(position(at, -5)).toBe(1);
    expect(position(at, 99)).toBe(at.length);
    expect(at[position(at, 0.3011) - 1]).toBe(0.3);
    expect(at[position(at, 0.3014) - 1]).toBe(0.3025);
  });
  it("has a stop for the threshold that each rule starts with", () => {
    for (const rule of ["top", "percent", "elbow"] as const) {
      const at = sliderStops(rule, 270, 0, 1);
      expect(at[position(at, START[rule]) - 1]).toBe(START[rule]);
    }
  });
});

describe("the range of colours", () => {
  it.each(golden.ranges)(
    "span what Python's figure spans, case %#",
    ({ values, signed, low, high, step }) => {
      expect(rangeOf(sortedScores([Float32Array.from(values)]), signed, null)).toMatchObject({
        low,
        high,
        step,
      });
    },
  );
});
