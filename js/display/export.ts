// What is shown, as a drawing (SVG), a picture (PNG) and a table (CSV): made in the browser,
// without a kernel.

import { headAt, type Scores, sectionStarts } from "../scores/head_scores";
import type { Memo } from "../scores/memo";
import { measuredAt } from "../scores/missing";
import { ranks } from "../scores/rank";
import { categoriesOf } from "../scores/threshold";
import { arrange, axisTicks, type Layout, slotsOf } from "./layout";
import { categoryColours, coloursByPlace, css, DIMMED, type Rgb, stops } from "./palette";
import { barTicks, place } from "./scales";
import { type Selection, selectedCells } from "./selection";
import type { MapName, Settings } from "./settings";
import { viewOf } from "./views";
import { type Panel, type Picture, scaleOf } from "./views/picture";

/** What is saved as a drawing: the picture, and the heads that are selected in it. */
export interface Drawing {
  readonly state: Selection;
  picture(): Picture | null;
}

const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif";
const [LEFT, TOP, BOTTOM, GAP] = [44, 24, 36, 14]; // around each map, in pixels
const WIDTH = 1000;
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

/** The drawing, on white, as text. Cells are vector squares, one path a colour. */
export function svg(source: Drawing): string {
  const { scores } = source.state;
  const picture = source.picture();
  if (!scores || !picture?.panels.length)
    throw new Error("There is nothing to save: no task is shown.");
  const [layers, heads] = [scores.layers.length, scores.heads];
  const [across, down] = picture.layersOn === "y" ? [heads, layers] : [layers, heads];
  const beside = picture.legend.length ? 190 : 96;
  const layout = arrange({
    width: WIDTH,
    ratio: 1,
    across,
    down,
    maps: picture.panels.length,
    columns: picture.columns,
    beside,
  });
  const [w, h] = [layout.cellWidth * across, layout.cellHeight * down];
  const { columns } = layout;
  const slots = slotsOf(picture, columns);
  const rows = Math.max(...slots.map(([row]) => row)) + 1;
  const drawings = picture.panels.map((panel, i) => {
    const [row, column] = slots[i]!;
    const [x, y] = [LEFT + column * (w + LEFT + GAP), TOP + row * (h + TOP + BOTTOM) + 4];
    return drawMap(source.state, picture, panel, layout, x, y);
  });
  const right = LEFT + columns * (w + LEFT + GAP) - GAP - LEFT + 24;
  const scale = scaleOf(picture);
  drawings.push(
    scale === null ? drawLegend(scores, picture, right) : drawBar(scale, picture, right, h),
  );
  const origin = [scores.model, scores.method].filter(Boolean).join(" · ");
  const height = Math.max(rows * (h + TOP + BOTTOM), TOP + picture.legend.length * 20) + 24;
  drawings.push(`<g fill="#666">${text(LEFT, height - 6, origin, { size: 10 })}</g>`);
  const width = Math.ceil(right + beside);
  const size = `width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"`;
  const style = `font-family="${FONT}" fill="#222"`;
  const opening = `<svg xmlns="http://www.w3.org/2000/svg" ${size} ${style}>`;
  const hatching = picture.panels.some((panel) => panel.missing) ? HATCHING : "";
  const paper = `<rect width="100%" height="100%" fill="#fff"/>`;
  return `${opening}${hatching}${paper}${drawings.join("")}</svg>`;
}

function drawMap(
  state: Selection,
  picture: Picture,
  panel: Panel,
  layout: Layout,
  x: number,
  y: number,
): string {
  const { scores } = state;
  const { cellWidth, cellHeight, across, down } = layout;
  const scale = scaleOf(picture);
  const colours = coloursByPlace(scale, "light", categoriesOf(scores!).size);
  const square = (u: number, v: number): string =>
    `M${x + u * cellWidth} ${y + v * cellHeight}h${cellWidth}v${cellHeight}h-${cellWidth}z`;
  const paths = new Map<string, string>(); // by fill
  let missing = ""; // heads that were not measured: hatched
  for (let v = 0; v < down; v++) {
    for (let u = 0; u < across; u++) {
      const cell = picture.layersOn === "y" ? v * across + u : u * down + v;
      const dim = panel.passes && !panel.passes[cell];
      const value = panel.values[cell]!;
      if (panel.missing?.[cell]) {
        missing += square(u, v);
        continue;
      }
      const colour = css(colours[scale === null ? value : place(value, picture.range)]!);
      const fill = dim ? `${colour}" fill-opacity="${DIMMED}` : colour;
      paths.set(fill, (paths.get(fill) ?? "") + square(u, v));
    }
  }
  const [w, h] = [cellWidth * across, cellHeight * down];
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
    text(x, y - 8, panel.title, { size: 13, weight: 600 }),
    ...axisTicks(layout, picture, scores!, "top").map(([at, t]) =>
      text(x - 6, y + at + 4, t, { anchor: "end" }),
    ),
    ...axisTicks(layout, picture, scores!, "left").map(([at, t]) =>
      text(x + at, y + h + 14, t, { anchor: "middle" }),
    ),
    text(x - 28, y + h / 2, yName!, { anchor: "middle", turn: true }),
    text(x + w / 2, y + h + 28, xName!, { anchor: "middle" }),
  ].join("");
}

function drawBar(scale: MapName, { range, label }: Picture, x: number, height: number): string {
  const y = TOP + 4;
  const list = stops(scale, "light");
  const at = (colour: Rgb, i: number): string =>
    `<stop offset="${round(i / (list.length - 1))}" stop-color="${css(colour)}"/>`;
  const ticks = barTicks(range).map(({ value, label: words }) =>
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

function drawLegend(scores: Scores, { legend }: Picture, x: number): string {
  const colours = categoryColours(categoriesOf(scores).size, "light");
  const lines = [...legend.keys()].reverse().map((at, i) => {
    const y = TOP + 4 + i * 20;
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
