// The views are the golden pictures that tests/test_views.py reads too: worked out by a third, tests/golden/reference.py.

import { describe, expect, it } from "vitest";
import golden from "../../tests/golden/views.json";
import { barTicks } from "../scales";
import { DEFAULTS, type Settings, START } from "../settings";
import { viewsOf } from "../views";
import { decode, type Header } from "../wire";
import { bytes } from "./fixtures";

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
  const cases = (pictures as unknown as [Partial<Settings>, Expected][]).map(([asked, expected]) => {
    return { name: JSON.stringify(asked), asked, expected };
  });

  it.each(cases)("$name", ({ asked, expected }) => {
    const { panels, legend, range, passing, ...found } = views.picture({ ...DEFAULTS, tasks: everything, ...asked });
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
    expect(found).toEqual({ colours, label, layersOn, columns });
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
