// The views are the golden pictures that tests/display/test_views.py reads too, worked out
// independently by tests/golden/reference.py.

import { describe, expect, it } from "vitest";
import golden from "../../../tests/golden/views.json";
import { barTicks, endText } from "../../display/scales";
import { DEFAULTS, type Settings, type ViewName } from "../../display/settings";
import { VIEWS, viewOf } from "../../display/views";
import { agreements } from "../../display/views/agreement";
import type { Picture } from "../../display/views/picture";
import { decode, type Header } from "../../display/wire";
import type { Scores } from "../../scores/head_scores";
import { Memo } from "../../scores/memo";
import { START } from "../../scores/threshold";
import { bytes, floats, scoresOf, task } from "../fixtures";

interface Expected {
  readonly panels: readonly (readonly [string, number, string | null])[];
  readonly range: unknown;
  readonly bar: readonly string[];
  readonly colours: string;
  readonly label: string;
  readonly layersOn: string;
  readonly columns: number | null;
  readonly span: number;
  /** The range of each map on a scale of its own, and its end as text. */
  readonly ends?: readonly (readonly [unknown, string] | null)[];
  readonly quiet: readonly (number | null)[];
  readonly passing: string | null;
  readonly legend: readonly (readonly [string, number])[];
}

const NAMES = Object.keys(VIEWS) as ViewName[];
/** The picture of a view, worked out anew. */
const pictureOf = (scores: Scores, settings: Settings): Picture =>
  viewOf(settings).picture(new Memo(scores), settings);
const bits = (mask: Uint8Array | null): string | null => mask && Array.from(mask).join("");

describe.each(golden.scores)("$name", ({ header, buffer, maps, pictures }) => {
  const scores = decode(header as unknown as Header, bytes(buffer));
  const everything = scores.tasks.map((task) => task.name);
  // One memo for all pictures: what is kept of one must not leak into another.
  const memo = new Memo(scores);
  const cases = (pictures as unknown as [Partial<Settings>, Expected][]).map(
    ([asked, expected]) => {
      return { name: JSON.stringify(asked), asked, expected };
    },
  );

  it.each(cases)("$name", ({ asked, expected }) => {
    const settings = { ...DEFAULTS, tasks: everything, ...asked };
    const picture = viewOf(settings).picture(memo, settings);
    const { panels, legend, range, passing } = picture;
    expect(panels.map(({ title, passes }) => [title, bits(passes)])).toEqual(
      expected.panels.map(([title, , passes]) => [title, passes]),
    );
    // Sums differ in their last digit by the order of adding.
    const shares = asked.view === "tasks" && asked.normalize === "share";
    panels.forEach(({ title, values: all, missing }, i) => {
      const wanted = floats(maps[expected.panels[i]![1]]!);
      const values = Array.from(all, (value, at) => (missing?.[at] ? Number.NaN : value));
      if (shares) {
        values.forEach((value, at) => {
          expect(Number.isNaN(value), title).toBe(Number.isNaN(wanted[at]));
          if (!Number.isNaN(value))
            expect(Math.abs(value - wanted[at]!), title).toBeLessThanOrEqual(1.2e-7 * wanted[at]!);
        });
      } else
        expect(
          values.map((value) => value + 0),
          title,
        ).toEqual(Array.from(wanted));
    });
    expect(range).toEqual(expected.range);
    expect(barTicks(range).map((tick) => tick.label)).toEqual(expected.bar);
    const own = panels.map((panel) => panel.range && [panel.range, endText(panel.range)]);
    expect(own.map((range) => range ?? null)).toEqual(expected.ends ?? own.map(() => null));
    panels.forEach(({ title, quiet = null }, i) => {
      const most = expected.quiet[i]!;
      expect(quiet === null, title).toBe(most === null);
      if (quiet !== null && most !== null) expect(quiet / most, title).toBeCloseTo(1, 6);
    });
    expect(picture.span ?? 1).toBe(expected.span);
    const { colours, label, layersOn, columns } = expected;
    // No method with a control made these: there is no floor.
    expect(picture).toMatchObject({ colours, label, layersOn, columns, floor: null });
    expect(bits(passing)).toBe(expected.passing);
    expect(legend.map(({ name, count }) => [name, count])).toEqual(expected.legend);
  });

  it("does not depend on what was asked before", () => {
    for (const { asked } of cases.slice().reverse().slice(0, 60)) {
      const settings = { ...DEFAULTS, tasks: everything, ...asked };
      expect(viewOf(settings).picture(memo, settings)).toEqual(pictureOf(scores, settings));
    }
  });
});

describe("settings", () => {
  it("are those of Python", () => {
    expect({ ...DEFAULTS, tasks: null }).toEqual(golden.settings.defaults); // null: all tasks
    expect(START).toEqual(golden.settings.start);
  });
});

describe("the noise floor", () => {
  const floored = (name: string, runs: number[][], floor: number | null) => ({
    ...task(name, runs),
    floor,
  });
  const scores = scoresOf(
    [floored("a", [[1, -3]], 0.5), floored("b", [[2, 2]], 0.25), floored("c", [[1, 1]], null)],
    [0],
    true,
  );

  it("is the largest of the tasks shown, on the scale of the numbers", () => {
    const floor = (asked: Partial<Settings>): number | null =>
      pictureOf(scores, { ...DEFAULTS, tasks: ["a", "b", "c"], ...asked }).floor;
    expect(floor({})).toBe(0.5);
    expect(floor({ tasks: ["b"] })).toBe(0.25);
    expect(floor({ normalize: "share" })).toBe(0.125);
    expect(floor({ tasks: ["c"] })).toBeNull();
    expect(floor({ view: "agreement" })).toBeNull();
  });
});

describe("the column between Always and Any", () => {
  it("stays while the slider is held, but not where there is nothing between", () => {
    const names = (needed: number, runs: number, held?: boolean) =>
      agreements(needed / runs, runs, held).map(([name]) => name);
    expect(names(10, 10)).toEqual(["Always", "Any"]);
    expect(names(10, 10, true)).toEqual(["Always", "≥ 10 of 10", "Any"]);
    expect(names(1, 10, true)).toEqual(["Always", "≥ 1 of 10", "Any"]);
    expect(names(4, 10, true)).toEqual(names(4, 10));
    expect(names(1, 2, true)).toEqual(["Always", "Any"]);
  });
});

describe("heads that were not measured", () => {
  const none = Number.NaN;
  const half = {
    ...task("a", [[1, 3, none, none]]),
    measured: Float32Array.from([1, 1, 0, 0]),
  };
  const scores = scoresOf([half], [0, 1], true);

  it("pass no threshold, in any view", () => {
    const asked = { ...DEFAULTS, tasks: ["a"], threshold: 0 };
    const passing = (more: Partial<Settings>) => [
      ...pictureOf(scores, { ...asked, ...more }).passing!,
    ];
    for (const view of NAMES) expect(passing({ view })).toEqual([1, 1, 0, 0]);
    expect(passing({ rule: "percent", threshold: 100 })).toEqual([1, 1, 0, 0]);
  });
});

describe("a view", () => {
  const runs = [
    [1, -3, 0.5, 2],
    [2, -1, 0.25, -4],
    [3, 1, 0.75, 0],
  ];
  const scores = scoresOf([task("a", runs, "x"), task("b", runs.slice().reverse())], [0, 1], true);
  const asked: Settings = { ...DEFAULTS, tasks: ["a", "b"], threshold: 1, agreement: 0.5 };
  const others: Partial<Settings> = {
    ...{ tasks: ["b"], task: "a", threshold: 2, rule: "top", agreement: 1, sign: "hurts" },
    ...{ reduction: "median", normalize: "share", colormap: "magma", cap: 1, orientation: "x" },
    ...{ columns: 1, isolated: "x" },
  };

  it.each(NAMES)("%s is registered under its name, with a title", (name) => {
    expect(VIEWS[name].name).toBe(name);
    expect(VIEWS[name].title.toLowerCase()).toBe(name);
    expect(VIEWS[name].about).not.toBe("");
  });

  it.each(NAMES)("%s depends on no setting that it does not use", (view) => {
    const settings = { ...asked, view };
    const names = Object.keys(others) as (keyof Settings)[];
    const unused = names.filter((name) => !VIEWS[view].uses.has(name));
    expect(unused.length).toBeGreaterThan(0);
    for (const name of unused) {
      const changed = { ...settings, [name]: others[name] };
      expect(pictureOf(scores, changed), name).toEqual(pictureOf(scores, settings));
    }
  });

  it.each(NAMES)("%s passes the heads that its picture lets pass", (view) => {
    for (const threshold of [null, 1]) {
      const settings = { ...asked, view, threshold };
      const memo = new Memo(scores);
      const masks = VIEWS[view]
        .tasks(memo, settings)
        .map((task) => VIEWS[view].passes(memo, task, settings));
      const passing = pictureOf(scores, settings).passing;
      expect(passing === null).toBe(masks.every((mask) => mask === null));
      passing?.forEach((passes, i) => {
        expect(passes).toBe(Number(masks.some((mask) => mask?.[i])));
      });
    }
  });

  it("marks the threshold where its numbers stand on the scale of colours", () => {
    const cuts = (more: Partial<Settings>) => pictureOf(scores, { ...asked, ...more }).cuts;
    expect(cuts({})).toEqual([1, -1]);
    expect(cuts({ sign: "helps" })).toEqual([1]);
    expect(cuts({ sign: "hurts" })).toEqual([-1]);
    expect(cuts({ normalize: "share" })).toEqual([1]);
    expect(cuts({ threshold: null })).toEqual([]);
    expect(cuts({ rule: "top" })).toEqual([]);
    expect(cuts({ view: "agreement" })).toEqual([]);
  });
});
