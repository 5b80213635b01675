// What is shown, as a drawing (SVG), a picture (PNG) and a table (CSV): made in the browser,
// without a kernel.

import { headAt, type Scores, sectionStarts } from "../scores/head_scores";
import type { Memo } from "../scores/memo";
import { measuredAt } from "../scores/missing";
import { ranks } from "../scores/rank";
import { categoriesOf } from "../scores/threshold";
import {
  arrange,
  axisTicks,
  type Layout,
  mapSize,
  NAME_LETTER,
  SPACE,
  sidesOf,
  slotsOf,
} from "./layout";
import { categoryColours, coloursByPlace, css, DIMMED, type Rgb, stops } from "./palette";
import { place } from "./scales";
import { type Selection, selectedCells } from "./selection";
import type { MapName, Settings } from "./settings";
import { countOf, endOf, namesOf, quietOf } from "./titles";
import { viewOf } from "./views";
import { isUnscored, type Panel, type Picture, rangeIn, scaleOf, ticksOf } from "./views/picture";

/** What is saved as a drawing: the picture, the heads selected in it, and its size of text. */
export interface Drawing {
  readonly state: Selection & { readonly textScale: number };
  picture(): Picture | null;
}

const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif";
const LEFT = SPACE.axisLabel + SPACE.tickLabels; // pixels
const [EDGE, TICKS, AXIS] = [8, 18, 18];
/** Lines of a name, and what stands below it. */
const [LINE, META] = [16, 16];
const WIDTH = 1000; // pixels, of about so much room for maps and text of any size
/** What heads that were not measured are filled with. */
const HATCHING =
  '<defs><pattern id="not-measured" width="6" height="6" patternUnits="userSpaceOnUse" ' +
  'patternTransform="rotate(45)"><path d="M0 0v6" stroke="#aaa" stroke-width="2"/></pattern></defs>';

/** Text as XML takes it: no control characters, no halves of letters. */
const escaped = (text: string): string =>
  text
    .replace(/\p{Cc}/gu, " ")
    .replace(/[\p{Cs}\ufffe\uffff]/gu, "\ufffd")
    .replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]!);
const round = (value: number): number => Math.round(value * 100) / 100;

interface Put {
  readonly size?: number;
  readonly anchor?: "start" | "middle" | "end";
  readonly weight?: number;
  readonly turn?: boolean;
}

function text(
  x: number,
  y: number,
  words: string,
  { size = 11, anchor = "start", weight = 400, turn = false }: Put = {},
): string {
  const where = turn
    ? `transform="translate(${round(x)} ${round(y)}) rotate(-90)"`
    : `x="${round(x)}" y="${round(y)}"`;
  const font = `font-size="${size}" text-anchor="${anchor}" font-weight="${weight}"`;
  return `<text ${where} ${font}>${escaped(words)}</text>`;
}

/** A name in as many lines as it takes, broken at spaces. */
function lines(words: string, room: number): string[] {
  const broken: string[] = [];
  for (const word of words.split(/(?<=\s)/)) {
    const last = broken.at(-1);
    if (last !== undefined && (last + word.trimEnd()).length * NAME_LETTER <= room)
      broken[broken.length - 1] = last + word;
    else broken.push(word);
  }
  return broken;
}

/** Where a map stands and what it has around it. */
interface Place {
  readonly x: number;
  readonly y: number;
  /** The lines of its task's name; none where that stands above the map before. */
  readonly name: readonly string[];
  /** Has it ticks at its left; the layers' or heads' name at its left; the other below it? */
  readonly edges: { readonly ticks: boolean; readonly left: boolean; readonly below: boolean };
}

/** Where every map stands, the right end of the maps, and their bottom. */
function placesOf(
  picture: Picture,
  layout: Layout,
): { places: Place[]; top: number; right: number; bottom: number } {
  const { columns, span } = layout;
  const [w, h] = mapSize(layout);
  const group = span * w + (span - 1) * SPACE.inner;
  const slots = slotsOf(picture, layout);
  const names = picture.panels.map((panel, i) => {
    const first = slots[i]![1] % span === 0;
    return first ? lines(namesOf(panel)[0], group + SPACE.tickLabels) : [];
  });
  const above = LINE * Math.max(...names.map((name) => name.length)) + META;
  const pitch = above + h + TICKS + EDGE;
  const places = slots.map(([row, column], i) => {
    const x =
      LEFT +
      Math.floor(column / span) * (group + SPACE.tickLabels + SPACE.gap) +
      (column % span) * (w + SPACE.inner);
    const below = !slots.some(([r, c]) => r > row && c === column);
    const edges = { ticks: column % span === 0, left: column === 0, below };
    return { x, y: EDGE + above + row * pitch, name: names[i]!, edges };
  });
  const rows = Math.max(...slots.map(([row]) => row)) + 1;
  const right = LEFT + columns * (group + SPACE.tickLabels + SPACE.gap) - SPACE.tickLabels;
  return { places, top: EDGE + above, right, bottom: EDGE + rows * pitch + AXIS };
}

/** The drawing, on white, as text. Cells are vector squares, one path a colour. */
export function svg(source: Drawing): string {
  const { scores, textScale } = source.state;
  const picture = source.picture();
  if (!scores || !picture?.panels.length)
    throw new Error("There is nothing to save: no task is shown.");
  const [across, down] = sidesOf({ scores }, picture);
  const beside = picture.legend.length ? 190 : 96;
  const { columns: wanted, span, slots, panels } = picture;
  const maps = slots ? 1 + Math.max(...slots.map(([task]) => task)) : panels.length;
  const layout = arrange({
    ...{ width: WIDTH / textScale, ratio: 1, across, down, maps, columns: wanted, beside },
    ...(span ? { span } : {}),
  });
  const { places, top, right, bottom } = placesOf(picture, layout);
  const drawings = panels.map((panel, i) =>
    drawMap(source.state, picture, panel, layout, places[i]!),
  );
  const scale = scaleOf(picture);
  drawings.push(
    scale === null
      ? drawLegend(scores, picture, right, top)
      : drawBar(scale, picture, right, top, mapSize(layout)[1]),
  );
  const origin = [scores.model, scores.method, scores.changed].filter(Boolean).join(" · ");
  const height = Math.ceil(Math.max(bottom, top + picture.legend.length * 20)) + 24;
  drawings.push(`<g fill="#666">${text(LEFT, height - 8, origin, { size: 10 })}</g>`);
  const width = Math.ceil(right + beside);
  // Laid out in less room and enlarged: larger text, and maps that fill what is left.
  const pixels = [width, height].map((side) => Math.round(side * textScale));
  const size = `width="${pixels[0]}" height="${pixels[1]}" viewBox="0 0 ${width} ${height}"`;
  const style = `font-family="${FONT}" fill="#222"`;
  const opening = `<svg xmlns="http://www.w3.org/2000/svg" ${size} ${style}>`;
  const hatching = panels.some((panel) => panel.missing) ? HATCHING : "";
  const paper = `<rect width="100%" height="100%" fill="#fff"/>`;
  return `${opening}${hatching}${paper}${drawings.join("")}</svg>`;
}

function drawMap(
  state: Selection,
  picture: Picture,
  panel: Panel,
  layout: Layout,
  { x, y, name, edges }: Place,
): string {
  const { scores } = state;
  const range = rangeIn(picture, panel);
  const { cellWidth, cellHeight, across, down } = layout;
  const scale = scaleOf(picture);
  const colours = coloursByPlace(scale, "light", categoriesOf(scores!).size);
  const square = (u: number, v: number): string =>
    `M${x + u * cellWidth} ${y + v * cellHeight}h${cellWidth}v${cellHeight}h-${cellWidth}z`;
  const paths = new Map<string, string>(); // by fill
  const unscored = isUnscored(panel);
  let missing = ""; // heads that were not measured: hatched
  for (let v = 0; v < down; v++) {
    for (let u = 0; u < across; u++) {
      const cell = picture.layersOn === "y" ? v * across + u : u * down + v;
      const dim = panel.passes && !panel.passes[cell];
      const value = panel.values[cell]!;
      if (panel.missing?.[cell]) {
        if (!unscored) missing += square(u, v);
        continue;
      }
      const colour = css(colours[scale === null ? value : place(value, range)]!);
      const fill = dim ? `${colour}" fill-opacity="${DIMMED}` : colour;
      paths.set(fill, (paths.get(fill) ?? "") + square(u, v));
    }
  }
  const [w, h] = [cellWidth * across, cellHeight * down];
  const [end, quiet] = [endOf(panel), quietOf(panel)];
  const below = [namesOf(panel)[1], countOf(picture, panel).join(" "), end && `to ${end}`]
    .concat(quiet && `quiet: at most ${quiet}`)
    .filter((words) => words.trim())
    .join(" · ");
  const [layerName, headName] = scores!.axes;
  const [yName, xName] = picture.layersOn === "y" ? [layerName, headName] : [headName, layerName];
  const outlines = selectedCells(state)
    .map(({ row, head }) => (picture.layersOn === "y" ? square(head, row) : square(row, head)))
    .join("");
  const dividers = sectionStarts(scores!)
    .map((row) =>
      picture.layersOn === "y"
        ? `M${x} ${y + row * cellHeight}h${w}`
        : `M${x + row * cellWidth} ${y}v${h}`,
    )
    .join("");
  return [
    `<g shape-rendering="crispEdges">`,
    ...[...paths].map(([fill, d]) => `<path fill="${fill}" d="${d}"/>`),
    ...(missing ? [`<path fill="url(#not-measured)" d="${missing}"/>`] : []),
    ...(dividers ? [`<path d="${dividers}" stroke="#222"/>`] : []),
    `<rect x="${x}" y="${y}" width="${w}" height="${h}" fill="none" stroke="#bbb"/>`,
    ...(outlines
      ? [
          `<path d="${outlines}" fill="none" stroke="#000" stroke-width="3"/>`,
          `<path d="${outlines}" fill="none" stroke="#fff"/>`,
        ]
      : []),
    "</g>",
    title(x, y - META - 6, name),
    `<g fill="#666">${text(x, y - 6, below)}</g>`,
    ...(unscored ? [text(x + w / 2, y + h / 2, "Not scored yet", { anchor: "middle" })] : []),
    ...(edges.ticks ? axisTicks(layout, picture, scores!, "top") : []).map(([at, t]) =>
      text(x - 6, y + at + 4, t, { anchor: "end" }),
    ),
    ...axisTicks(layout, picture, scores!, "left").map(([at, t]) =>
      text(x + at, y + h + 14, t, { anchor: "middle" }),
    ),
    ...(edges.left ? [text(x - 32, y + h / 2, yName!, { anchor: "middle", turn: true })] : []),
    ...(edges.below ? [text(x + w / 2, y + h + 30, xName!, { anchor: "middle" })] : []),
  ].join("");
}

/** A task's name, its last line at `y`. */
function title(x: number, y: number, name: readonly string[]): string {
  const spans = name.map((line, i) => {
    const at = round(y - LINE * (name.length - 1 - i));
    return `<tspan x="${round(x)}" y="${at}">${escaped(line)}</tspan>`;
  });
  return name.length ? `<text font-size="13" font-weight="600">${spans.join("")}</text>` : "";
}

function drawBar(scale: MapName, picture: Picture, x: number, y: number, height: number): string {
  const { range, label } = picture;
  const list = stops(scale, "light");
  const at = (colour: Rgb, i: number): string =>
    `<stop offset="${round(i / (list.length - 1))}" stop-color="${css(colour)}"/>`;
  const ticks = ticksOf(picture).map(({ value, label: words }) =>
    text(x + 20, y + height - ((value - range.low) / (range.high - range.low)) * height + 4, words),
  );
  const along = `id="hw-bar" x1="0" y1="1" x2="0" y2="0"`;
  const box = `x="${x}" y="${y}" width="14" height="${height}"`;
  return [
    `<defs><linearGradient ${along}>${list.map(at).join("")}</linearGradient></defs>`,
    `<rect ${box} fill="url(#hw-bar)" stroke="#bbb"/>`,
    ...ticks,
    text(x, y - 8, label),
  ].join("");
}

function drawLegend(scores: Scores, { legend }: Picture, x: number, top: number): string {
  const colours = categoryColours(categoriesOf(scores).size, "light");
  const lines = [...legend.keys()].reverse().map((at, i) => {
    const y = top + i * 20;
    const { name, count } = legend[at]!;
    const swatch = `<rect x="${x}" y="${y}" width="12" height="12" fill="${css(colours[at]!)}"/>`;
    return swatch + text(x + 18, y + 10, `${name} (${count})`, { size: 12 });
  });
  return lines.join("");
}

/** The picture, twice as many pixels as the drawing's size. */
export async function png(source: Drawing): Promise<Blob> {
  const drawing = svg(source);
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(drawing)}`;
  await image.decode();
  const canvas = new OffscreenCanvas(image.naturalWidth * 2, image.naturalHeight * 2);
  const pen = canvas.getContext("2d");
  if (!pen) throw new Error("This browser gives no canvas to draw on.");
  pen.drawImage(image, 0, 0, canvas.width, canvas.height);
  return canvas.convertToBlob({ type: "image/png" });
}

/** Put the picture on the clipboard; says so. */
export async function copyPicture(source: Drawing): Promise<string> {
  if (!navigator.clipboard?.write)
    throw new Error("This page may not use the clipboard; save the PNG instead.");
  await navigator.clipboard.write([new ClipboardItem({ "image/png": png(source) })]);
  return "Copied.";
}

/** Save a file through the browser; says so. */
export function download(name: string, content: Blob): string {
  const url = URL.createObjectURL(content);
  const link = document.createElement("a");
  [link.href, link.download] = [url, name];
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
  return `Saved ${name}.`;
}

/** What the table is made from: the selection, and the settings that decide what passes. */
export type Table = Selection & Settings & { readonly memo: Memo | null };

/** The selected heads, a row a head and task: layer, head, task, number, interval, rank, passes. */
export function csv(state: Table): string {
  const { scores, memo } = state;
  // A spreadsheet would run a name that starts as a formula does, quoted or not: an apostrophe
  // makes it text.
  const quoted = (name: string): string => {
    const value = /^[=+\-@\t\r]/.test(name) ? `'${name}` : name;
    return /[",\n\r]/.test(value) ? `"${value.replace(/"/g, '""')}"` : value;
  };
  const lines = ["layer,head,task,runs,mean,low95,high95,min,max,rank,passes"];
  const cells = selectedCells(state);
  for (const task of scores?.tasks ?? []) {
    const rank = ranks(memo!, task);
    const passes = viewOf(state).passes(memo!, task, state);
    for (const cell of cells) {
      const i = cell.row * scores!.heads + cell.head;
      const [layer, head] = headAt(scores!, cell);
      const numbers = [task.mean, task.low, task.high, task.least, task.most].map((map) =>
        Number.isNaN(map[i]!) ? "" : String(Number(map[i]!.toPrecision(9))),
      );
      lines.push(
        [
          layer,
          head,
          quoted(task.name),
          measuredAt(task, i),
          ...numbers,
          rank[i] || "",
          passes ? passes[i] : "",
        ].join(","),
      );
    }
  }
  return `${lines.join("\n")}\n`;
}
