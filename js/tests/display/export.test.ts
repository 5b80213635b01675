// What is saved: names stay data in a table and text in a drawing.

import { describe, expect, it } from "vitest";
import { csv, type Drawing, svg, type Table } from "../../display/export";
import { DEFAULTS, type Settings } from "../../display/settings";
import { viewOf } from "../../display/views";
import type { Head } from "../../scores/head_scores";
import { Memo } from "../../scores/memo";
import { scoresOf, task } from "../fixtures";

const NAMES = [
  'say "hi", twice',
  "=cmd()",
  "<img src=x onerror=alert(1)>",
  "line\nbreak",
  "plain & simple",
  "-1+1",
  "@sum",
];
const runs = [
  [0.1, 0.875, 0.5, 0.30000001192092896],
  [0.3, 0.625, 0.5, 0.1],
].map((run) => run.map(Math.fround));
const scores = scoresOf(
  NAMES.map((name, i) => task(name, runs, i === 2 ? '"><script>alert(1)</script>' : null)),
  [4, 9],
);

function open(
  settings: Partial<Settings> = {},
  selected: Head[] = [],
  textScale = 1,
): Drawing & { readonly state: Table } {
  const memo = new Memo(scores);
  const state = { ...DEFAULTS, tasks: NAMES, ...settings, selected, textScale, scores, memo };
  return { state, picture: () => viewOf(state).picture(memo, state) };
}

/** A table as a reader of CSV sees it. */
function read(table: string): string[][] {
  const rows: string[][] = [[]];
  const cell = /("(?:[^"]|"")*"|[^",\n]*)(,|\n|$)/y;
  while (cell.lastIndex < table.length) {
    const [, value, end] = cell.exec(table)!;
    rows.at(-1)!.push(value!.startsWith('"') ? value!.slice(1, -1).replace(/""/g, '"') : value!);
    if (end === "\n") rows.push([]);
  }
  return rows.slice(0, -1);
}

describe("the table", () => {
  const selected: Head[] = [
    [9, 0],
    [4, 1],
    [5, 0], // not in these scores
  ];
  const [head, ...rows] = read(csv(open({ rule: "top", threshold: 1 }, selected).state));

  it("has a row a selected head and task, all as wide as its head", () => {
    expect(head).toEqual("layer,head,task,runs,mean,low95,high95,min,max,rank,passes".split(","));
    expect(rows).toHaveLength(2 * NAMES.length);
    expect(rows.every((row) => row.length === head!.length)).toBe(true);
    expect(rows[8]!.filter((_, i) => i !== 2)).toEqual([
      "9",
      "0",
      "2",
      "0.5",
      "0.5",
      "0.5",
      "0.5",
      "0.5",
      "2",
      "0",
    ]);
    expect(rows[9]!.filter((_, i) => i !== 2)).toEqual([
      "4",
      "1",
      "2",
      "0.75",
      "0.75",
      "0.75",
      "0.625",
      "0.875",
      "1",
      "1",
    ]);
  });
  it("keeps names as they are, and those that a spreadsheet would run behind an apostrophe", () => {
    const names = rows.filter((_, i) => i % 2 === 0).map((row) => row[2]);
    expect(names).toEqual(NAMES.map((name) => (/^[=+\-@]/.test(name) ? `'${name}` : name)));
  });
  it("has scores that read back as the same float32", () => {
    const [[, row]] = [read(csv(open({}, [[9, 1]]).state))];
    expect(Math.fround(Number(row![8]))).toBe(runs[0]![3]);
    expect(row!.at(-1)).toBe(""); // no threshold
  });
  it("is a head alone when nothing is selected", () => {
    expect(csv(open().state).trim().split("\n")).toHaveLength(1);
  });
});

describe("the drawing", () => {
  const drawings = (["tasks", "agreement", "categories"] as const).map((view) =>
    svg(open({ view }, [[9, 1]])),
  );

  it.each(drawings.map((drawing, i) => [i, drawing] as const))(
    "has names as text only, view %i",
    (_, drawing) => {
      const tags = new Set(Array.from(drawing.matchAll(/<([^\s>/]+)/g), ([, tag]) => tag));
      const known = ["svg", "rect", "g", "path", "text", "tspan", "defs", "linearGradient", "stop"];
      expect([...tags].filter((tag) => !known.includes(tag!))).toEqual([]);
      const texts = drawing.replace(/<\/?tspan[^>]*>/g, "");
      expect(texts).toContain(">say &quot;hi&quot;, twice<");
      expect(texts).toContain(">plain &amp; simple<");
      expect(drawing).not.toMatch(/<img|<script| on\w+="/);
      expect(drawing.match(/<text/g)!.length).toBe(drawing.match(/<\/text>/g)!.length);
      expect(drawing).not.toMatch(/NaN|undefined|Infinity/);
    },
  );
  it("has a square for every head of every map", () => {
    for (const [i, maps] of [NAMES.length, 2 * NAMES.length, NAMES.length + 1].entries()) {
      const filled = drawings[i]!.matchAll(/<path fill="rgb[^>]* d="([^"]*)"/g);
      const squares = [...filled].reduce((sum, [, d]) => sum + d!.split("M").length - 1, 0);
      expect(squares).toBe(maps * 4);
    }
  });
  it("dims heads that do not pass", () => {
    expect(svg(open({ threshold: 0.6 }))).toContain('fill-opacity="0.13"');
    expect(svg(open())).not.toContain("fill-opacity");
  });
  it("has larger text and maps that fill what is left, where text is large", () => {
    const sizes = (drawing: string) =>
      Array.from(drawing.matchAll(/(?:width|height|viewBox)="([\d. ]+)"/g), ([, size]) => size!);
    const [width, height, box] = sizes(svg(open({}, [], 1.6)));
    const [wide, high] = box!.split(" ").slice(2).map(Number);
    expect([Number(width), Number(height)]).toEqual([1.6 * wide!, 1.6 * high!].map(Math.round));
    expect(Number(width)).toBeLessThanOrEqual(1001);
  });
  it("says so when there is nothing to save", () => {
    expect(() => svg(open({ tasks: [] }))).toThrow("There is nothing to save: no task is shown.");
  });
});
