// The views are the golden pictures that tests/test_views.py reads too: worked out by a third, tests/golden/reference.py.

import { describe, expect, it } from "vitest";
import golden from "../../tests/golden/views.json";
import { barTicks } from "../display/scales";
import { DEFAULTS, type Settings, START } from "../display/settings";
import { agreements, viewsOf } from "../display/views";
import { decode, type Header } from "../display/wire";
import { bytes, scoresOf, task } from "./fixtures";

interface Expected {
  readonly panels: readonly (readonly [string, number, string | null])[];
  readonly range: unknown;
  readonly bar: readonly string[];
  readonly colours: string;
  readonly label: string;
  readonly layersOn: string;
  readonly columns: number | null;
  readonly passing: string | null;
  readonly legend: readonly (readonly [string, number])[];
}

const bits = (mask: Uint8Array | null): string | null => mask && Array.from(mask).join("");

describe.each(golden.scores)("$name", ({ header, buffer, maps, pictures }) => {
  const scores = decode(header as unknown as Header, bytes(buffer));
  const everything = scores.tasks.map((task) => task.name);
  const views = viewsOf(scores); // one for all: what is kept from one picture must not leak into another
  const cases = (pictures as unknown as [Partial<Settings>, Expected][]).map(
    ([asked, expected]) => {
      return { name: JSON.stringify(asked), asked, expected };
    },
  );

  it.each(cases)("$name", ({ asked, expected }) => {
    const {
      panels,
      slots: _,
      legend,
      range,
      passing,
      ...found
    } = views.picture({ ...DEFAULTS, tasks: everything, ...asked });
    expect(panels.map(({ title, passes }) => [title, bits(passes)])).toEqual(
      expected.panels.map(([title, , passes]) => [title, passes]),
    );
    const shares = asked.view === "tasks" && asked.normalize === "share"; // sums differ in their last digit by the order of adding
    panels.forEach(({ title, values }, i) => {
      const wanted = Float32Array.from(maps[expected.panels[i]![1]]!);
      if (shares) {
        values.forEach((value, at) => {
          expect(Math.abs(value - wanted[at]!), title).toBeLessThanOrEqual(1.2e-7 * wanted[at]!);
        });
      } else
        expect(
          Array.from(values, (value) => value + 0),
          title,
        ).toEqual(Array.from(wanted));
    });
    expect(range).toEqual(expected.range);
    expect(barTicks(range).map((tick) => tick.label)).toEqual(expected.bar);
    const { colours, label, layersOn, columns } = expected;
    expect(found).toEqual({ colours, label, layersOn, columns, floor: null }); // no method with a control made these
    expect(bits(passing)).toBe(expected.passing);
    expect(legend.map(({ name, count }) => [name, count])).toEqual(expected.legend);
  });

  it("does not depend on what was asked before", () => {
    for (const { asked } of cases.slice().reverse().slice(0, 60)) {
      const settings = { ...DEFAULTS, tasks: everything, ...asked };
      expect(views.picture(settings)).toEqual(viewsOf(scores).picture(settings));
    }
  });
});

describe("settings", () => {
  it("are those of Python", () => {
    expect({ ...DEFAULTS, tasks: null }).toEqual(golden.settings.defaults); // no tasks given: all of them
    expect(START).toEqual(golden.settings.start);
  });
});

describe("the noise floor", () => {
  const known = (name: string, runs: number[][], floor: number | null) => ({
    ...task(name, runs),
    floor,
  });
  const scores = scoresOf(
    [known("a", [[1, -3]], 0.5), known("b", [[2, 2]], 0.25), known("c", [[1, 1]], null)],
    [0],
    true,
  );

  it("is the largest of the tasks shown, on the scale of the numbers", () => {
    const floor = (asked: Partial<Settings>): number | null =>
      viewsOf(scores).picture({ ...DEFAULTS, tasks: ["a", "b", "c"], ...asked }).floor;
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

describe("rows that are not scored yet", () => {
  const half = { ...task("a", [[1, 3, 0, 0]]), unscored: [1] };
  const scores = scoresOf([half], [0, 1], true);

  it("pass no threshold, in any view", () => {
    const asked = { ...DEFAULTS, tasks: ["a"], threshold: 0 };
    for (const view of ["tasks", "agreement", "categories"] as const) {
      expect([...viewsOf(scores).picture({ ...asked, view }).passing!]).toEqual([1, 1, 0, 0]);
    }
    expect([
      ...viewsOf(scores).picture({ ...asked, rule: "percent", threshold: 100 }).passing!,
    ]).toEqual([1, 1, 0, 0]);
  });
});
