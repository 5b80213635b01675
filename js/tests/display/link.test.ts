// The link of an exported page: what is shown, in its address and back.

import { describe, expect, it } from "vitest";
import golden from "../../../tests/golden/views.json";
import { fragmentOf, type Linked, linked } from "../../display/link";
import { DEFAULTS } from "../../display/settings";
import { scoresOf, task } from "../fixtures";

const scores = scoresOf([task("Math", [[0, 1, 2, 3]]), task("½ <b>#&", [[0, 1, 2, 3]])], [2, 5]);
const first: Linked = { ...DEFAULTS, tasks: ["Math", "½ <b>#&"], selected: [] };
const link = (values: unknown): string => `#show=${encodeURIComponent(JSON.stringify(values))}`;

describe("a link", () => {
  it("brings back all that differs from the page, and nothing else", () => {
    const now: Linked = {
      ...first,
      view: "agreement",
      threshold: -0.25,
      tasks: ["½ <b>#&"],
      cap: "99.5%",
      columns: 2,
      selected: [
        [5, 1],
        [2, 0],
      ],
    };
    const fragment = fragmentOf(now, first);
    expect(fragment).toMatch(/^#show=[\w%.!~*'()-]*$/);
    const read = linked(fragment, scores);
    expect({ ...first, ...read }).toEqual(now);
    expect(Object.keys(read)).toHaveLength(6);
    expect(linked(fragmentOf(first, first), scores)).toEqual({});
  });

  it("takes every choice that Python has", () => {
    for (const [name, values] of Object.entries(golden.settings.choices))
      for (const value of values)
        expect(linked(link({ [name]: value }), scores)).toEqual({ [name]: value });
  });

  it("has a head once, as Python has it", () => {
    const selected = [
      [5, 1],
      [2, 0],
      [5, 1],
    ];
    expect(linked(link({ selected }), scores)).toEqual({ selected: [selected[0], selected[1]] });
  });

  it("takes the caps and columns that Python takes", () => {
    for (const cap of [1.5e-45, 3.4e38, "0.5%", "100%"])
      expect(linked(link({ cap }), scores)).toEqual({ cap });
    expect(linked(link({ columns: 2 ** 53 - 1 }), scores)).toEqual({ columns: 2 ** 53 - 1 });
  });

  it("leaves anchors of others alone", () => {
    expect(linked("", scores)).toEqual({});
    expect(linked("#results", scores)).toEqual({});
  });

  it.each([
    ["#show=%7B%22a", "it cannot be read"],
    ["#show=%E0%A4%A", "it cannot be read"],
    [link([1]), "it cannot be read"],
    [link(null), "it cannot be read"],
    [link({ rule: "best" }), 'rule cannot be "best" here'],
    [link({ toString: 1 }), "toString cannot be 1 here"],
    [link({ selected: [[3, 0]] }), "selected cannot be [[3,0]] here"],
    [link({ selected: [[2, 2]] }), "selected cannot be [[2,2]] here"],
    [link({ tasks: ["gone"] }), 'tasks cannot be ["gone"] here'],
    [link({ threshold: "1" }), 'threshold cannot be "1" here'],
    [link({ agreement: 2 }), "agreement cannot be 2 here"],
    [link({ cap: 0 }), "cap cannot be 0 here"],
    [link({ tasks: ["Math", "Math"] }), 'tasks cannot be ["Math","Math"] here'],
    [link({ cap: 1e308 }), "cap cannot be 1e+308 here"],
    [link({ cap: 1e-320 }), "cap cannot be 1e-320 here"],
    [link({ cap: "0%" }), 'cap cannot be "0%" here'],
    [link({ columns: 1e308 }), "columns cannot be 1e+308 here"],
    [link({ columns: 0.5 }), "columns cannot be 0.5 here"],
  ])("says what does not fit in %s", (fragment, why) => {
    expect(() => linked(fragment, scores)).toThrow(why);
  });
});
