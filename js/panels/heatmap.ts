// One map of layer x head: cells, ticks, title, and the outlines of selected and pointed-at heads.

import { type Layout, layoutOf } from "../display/layout";
import { categoryColours, pixels, ramp, type Scheme, stops } from "../display/palette";
import type { Panel as MapPanel, Picture } from "../display/picture";
import { EIGHTS, SIXES, ticks } from "../display/scales";
import { categoriesOf } from "../display/views";
import {
  type Cell,
  type Change,
  headAt,
  type Panel,
  PICTURE,
  type State,
  type Store,
} from "../store";
import { all, make, setText } from "./dom";
import { drawMarks, MARGIN } from "./marks";
import { listen } from "./pointer";

/** How far from the screen a map is still kept up to date. */
const NEAR = "160px";
const DIMMED = 0.13; // opacity of a head that does not pass

/** A panel for the map of that number. */
export function heatmap(number: number): Panel {
  return (el, store) => {
    const [named, part] = [make("span", "map-task"), make("span", "map-part")]; // a long name is cut, "(Always)" is not
    const title = make("span", "map-name", named, part);
    const count = make("span", "map-count");
    const cells = make("canvas", "cells");
    const marks = make("canvas", "marks");
    const plot = make("div", "plot", cells, marks);
    plot.tabIndex = 0;
    plot.setAttribute("role", "application");
    plot.setAttribute("aria-roledescription", "heatmap");
    const rows = make("div", "ticks-y");
    const columns = make("div", "ticks-x");
    const [down, across] = [make("div", "label-y"), make("div", "label-x")];
    el.append(make("figcaption", "map-title", title, count), down, rows, plot, columns, across);

    let image: ImageData | null = null;
    let near = true; // on the screen or not far from it, as long as nothing else is known
    let stale = false;
    let drawn: readonly unknown[] = []; // what the cells were last drawn from: half of the maps stay as they are in a drag
    const draw = (): void => {
      const picture = store.picture();
      const panel = picture?.panels[number];
      if (!picture || !panel) return;
      const task = store.state.scores?.tasks.find(({ name }) => name === panel.task);
      setText(named, `${task?.warning ? "⚠ " : ""}${task?.name ?? panel.title}`);
      setText(part, task ? panel.title.slice(task.name.length) : "");
      title.title = [panel.title, task?.note, task?.warning].filter(Boolean).join(" — ");
      plot.dataset.task = panel.task ?? panel.title;
      const layout = layoutOf(store.state, picture);
      const fits = image?.width === layout.across && image.height === layout.down;
      stale = !near && fits;
      if (stale) return; // drawn when it comes near: a drag redraws what can be seen
      const { range, colours, layersOn } = picture;
      const { passes } = panel;
      const places =
        colours === "categories"
          ? panel.values
          : (panel.places ?? store.state.views!.places(panel.values, range));
      const shades = coloursOf(store.state, picture);
      const now = [places, passes, shades, layersOn, layout.across, layout.down, task?.unscored];
      if (now.every((one, i) => one === drawn[i])) return;
      drawn = now;
      setText(count, countText(picture, panel));
      if (!image || !fits) {
        image = new ImageData(layout.across, layout.down);
        [cells.width, cells.height] = [layout.across, layout.down];
      }
      paint(image, places, passes, layersOn, shades);
      if (task?.unscored?.length) clear(image, task.unscored, layersOn);
      hatch(
        plot,
        marks,
        task?.unscored ?? [],
        layersOn,
        layersOn === "y" ? layout.down : layout.across,
      );
      cells.getContext("2d")!.putImageData(image, 0, 0);
    };
    let laidOut: readonly unknown[] = []; // what ticks and marks were last laid out for
    /** Lay out ticks and marks where something about them changed; says whether it did. */
    const resize = (): boolean => {
      const [picture, { scores }] = [store.picture(), store.state];
      if (!scores || !picture) return false;
      const layout = layoutOf(store.state, picture);
      const { settled } = store.state;
      const now = [
        scores,
        settled,
        picture.layersOn,
        picture.colours === "categories",
        ...Object.values(layout),
      ];
      if (now.every((one, i) => one === laidOut[i])) return false;
      laidOut = now;
      const { cellWidth, cellHeight, ratio } = layout;
      marks.width = Math.round((cellWidth * layout.across) / ratio + 2 * MARGIN) * ratio;
      marks.height = Math.round((cellHeight * layout.down) / ratio + 2 * MARGIN) * ratio;
      marks.style.width = `${marks.width / ratio}px`;
      marks.style.height = `${marks.height / ratio}px`;
      const [layerName, headName] = scores.axes;
      const names = picture.layersOn === "y" ? [layerName, headName] : [headName, layerName];
      [down.textContent, across.textContent] = names as [string, string];
      if (!settled) return true; // two hundred small texts would hold the first frame up by a third of its time
      for (const [box, side] of [
        [rows, "top"],
        [columns, "left"],
      ] as const) {
        const labels = axisTicks(layout, picture, scores.layers, side).map(([at, text]) => {
          const label = make("span", "tick", text);
          label.style[side] = `${at}px`;
          return label;
        });
        box.replaceChildren(...labels);
      }
      return true;
    };
    let marked = false; // a canvas that was never drawn on costs nothing
    const mark = (): void => {
      const { selected, point, box } = store.state;
      const picture = store.picture();
      const any = selected.length > 0 || point !== null || box !== null;
      if (picture && (any || marked))
        drawMarks(marks, store.state, layoutOf(store.state, picture), picture.layersOn);
      marked = any;
    };
    const name = (): void => {
      const { scores, selected } = store.state;
      const picture = store.picture();
      if (!scores || !picture) return;
      const size = `${scores.layers.length} layers by ${scores.heads} heads, ${selected.length} selected`;
      const title = picture.panels[number]?.title ?? "";
      plot.setAttribute(
        "aria-label",
        `${title}: ${size}. Arrow keys move, space selects, question mark lists the keys.`,
      );
    };

    const own = new AbortController();
    listen({ plot, rows, columns }, store, own.signal);
    resize();
    draw();
    mark();
    name();
    const stop = store.subscribe((changed) => {
      const has = (name: Change): boolean => changed.has(name);
      const sized = ["settled", "width", "ratio", ...PICTURE].some(
        (name) => name !== "threshold" && has(name as Change),
      );
      const resized = sized && resize();
      if (has("scheme") || PICTURE.some(has)) draw();
      if (resized || has("point") || has("selected") || has("box")) mark();
      if (sized || has("selected")) name();
    });
    const observer = new IntersectionObserver(
      (entries) => {
        near = entries[entries.length - 1]!.isIntersecting;
        if (near && stale) draw();
      },
      { rootMargin: NEAR },
    );
    observer.observe(plot);
    return all(
      stop,
      () => own.abort(),
      () => observer.disconnect(),
    );
  };
}

/** Where an axis has ticks, in CSS pixels, and their text. */
export function axisTicks(
  { cellWidth, cellHeight, ratio, across, down }: Layout,
  { layersOn, colours }: Picture,
  layers: readonly number[],
  side: "top" | "left",
): [number, string][] {
  const [count, size, apart] = side === "top" ? [down, cellHeight, 14] : [across, cellWidth, 20];
  const isLayers = (side === "top") === (layersOn === "y");
  const steps = isLayers && colours === "categories" ? EIGHTS : SIXES;
  return ticks(count, steps, size / ratio, apart).map((i) => [
    ((i + 0.5) * size) / ratio,
    String(isLayers ? layers[i] : i),
  ]);
}

function countText({ colours, slots }: Picture, { passes, values }: MapPanel): string {
  const count = (mask: ArrayLike<number>): number => {
    let sum = 0;
    for (let i = 0; i < mask.length; i++) if (mask[i]) sum++;
    return sum;
  };
  if (colours === "categories") return `${count(values)}`;
  if (!passes) return "";
  return `${count(passes)} ${slots ? "on" : "pass"}`;
}

/** The colour map as pixels, and the same dimmed. Made once: every map is drawn with it in every frame of a drag. */
function coloursOf(
  { scores, views, scheme }: State,
  { colours }: Picture,
): readonly [Uint32Array, Uint32Array] {
  return views!.once(
    () => {
      const list = rgbs(colours, scheme, categoriesOf(scores!).size);
      return [pixels(list, 1), pixels(list, DIMMED)] as const;
    },
    "pixels",
    colours,
    scheme,
  );
}

/** The colours by place: 256 of a map, or one for each class. */
export const rgbs = (colours: Picture["colours"], scheme: Scheme, categories: number) =>
  colours === "categories" ? categoryColours(categories, scheme) : ramp(stops(colours, scheme));

/** One pixel a cell; the browser enlarges it by whole device pixels without smoothing. */
function paint(
  { data, width: across, height: down }: ImageData,
  places: ArrayLike<number>,
  passes: Uint8Array | null,
  layersOn: "y" | "x",
  [bright, dim]: readonly [Uint32Array, Uint32Array],
): void {
  const out = new Uint32Array(data.buffer);
  for (let y = 0, i = 0; y < down; y++) {
    for (let x = 0; x < across; x++, i++) {
      const cell = layersOn === "y" ? i : x * down + y;
      out[i] = (passes && !passes[cell] ? dim : bright)[places[cell]!]!;
    }
  }
}

/** Stripes over the layers that are not scored yet, a piece for each run of them. */
function hatch(
  plot: Element,
  before: Element,
  rows: readonly number[],
  layersOn: "y" | "x",
  count: number,
): void {
  for (const old of plot.querySelectorAll(".hw-hatched")) old.remove();
  const [start, size, from, length] =
    layersOn === "y"
      ? (["top", "height", "left", "width"] as const)
      : (["left", "width", "top", "height"] as const);
  for (let i = 0, first = 0; i < rows.length; i++) {
    if (rows[i + 1] === rows[i]! + 1) continue;
    const piece = make("div", "hatched");
    piece.style[start] = `${(100 * rows[first]!) / count}%`;
    piece.style[size] = `${(100 * (i - first + 1)) / count}%`;
    piece.style[from] = "0";
    piece.style[length] = "100%";
    plot.insertBefore(piece, before);
    first = i + 1;
  }
}

/** Nothing where nothing is scored yet: the hatching behind the cells shows. */
function clear(
  { data, width, height }: ImageData,
  rows: readonly number[],
  layersOn: "y" | "x",
): void {
  const out = new Uint32Array(data.buffer);
  for (const row of rows) {
    if (layersOn === "y") out.fill(0, row * width, (row + 1) * width);
    else for (let y = 0; y < height; y++) out[y * width + row] = 0;
  }
}

/** A head as it is read aloud. */
export function spokenHead(store: Store, cell: Cell): string {
  const { scores } = store.state;
  const picture = store.picture();
  if (!scores || !picture) return "";
  const [layer, head] = headAt(scores, cell);
  const i = cell.row * scores.heads + cell.head;
  const classes = picture.colours === "categories";
  const unscored = (name: string | null): boolean =>
    !!scores.tasks.find((task) => task.name === name)?.unscored?.includes(cell.row);
  const values = picture.panels.map(({ title, values, task }) =>
    unscored(task)
      ? `${title} not scored yet`
      : classes
        ? title === picture.panels[0]?.title
          ? picture.legend[values[i]!]?.name
          : ""
        : `${title} ${values[i]!.toPrecision(3)}`,
  );
  return `Layer ${layer}, head ${head}: ${values.filter(Boolean).join(", ")}`;
}
