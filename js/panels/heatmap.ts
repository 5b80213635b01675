// One map of layer x head: cells, ticks, title, and the outlines of selected and pointed-at heads.

import { axisTicks, layoutOf, sidesOf } from "../display/layout";
import { coloursByPlace, DIMMED, pixels } from "../display/palette";
import { places as placesOf } from "../display/scales";
import {
  isUnscored,
  type Panel as MapPanel,
  type Picture,
  rangeIn,
  scaleOf,
} from "../display/views/picture";
import { type Scores, sectionNames, sectionStarts } from "../scores/head_scores";
import { categoriesOf } from "../scores/threshold";
import type { MapSource, MapState, Panel } from "../state";
import { all, make } from "./dom";
import { mapNote } from "./map_note";
import { mapTitle } from "./map_title";
import { drawMarks, MARGIN } from "./marks";
import { listen } from "./pointer";

/** How far from the screen a map is still kept up to date. */
const NEAR = "160px";

/** About how wide a letter of an axis' name is. */
const LETTER = 7;

/** A panel for the map of that number. */
export function heatmap(number: number): Panel<MapSource> {
  return (el, source) => {
    const [title, note] = [mapTitle(source), mapNote(source)];
    const cells = make("canvas", "cells");
    const marks = make("canvas", "marks");
    const hatched = make("div", "hatched");
    hatched.hidden = true;
    const plot = make("div", "plot", hatched, cells, marks);
    plot.tabIndex = 0;
    plot.setAttribute("role", "application");
    plot.setAttribute("aria-roledescription", "heatmap");
    const rows = make("div", "ticks-y");
    const columns = make("div", "ticks-x");
    const [down, across] = [make("div", "label-y"), make("div", "label-x")];
    el.append(title.el, down, rows, plot, note.el, columns, across);

    let image: ImageData | null = null;
    let near = true; // on the screen or not far from it; until an observer says otherwise
    let stale = false;
    // What the cells were last drawn from: half of the maps stay as they are in a drag.
    let drawn: readonly unknown[] = [];
    const draw = (): void => {
      const picture = source.picture();
      const panel = picture?.panels[number];
      if (!picture || !panel) return;
      title.draw(picture, panel);
      plot.dataset.task = panel.task ?? panel.title;
      const [across, down] = sidesOf(source.state, picture);
      const fits = image?.width === across && image.height === down;
      stale = !near && fits;
      if (stale) return; // drawn when it comes near: a drag redraws what can be seen
      const { layersOn } = picture;
      const { passes } = panel;
      const places = colourPlaces(source.state, picture, panel);
      const shades = coloursOf(source.state, picture);
      const now = [places, passes, shades, layersOn, across, down, panel.missing];
      if (now.every((part, i) => part === drawn[i])) return;
      drawn = now;
      title.count(picture, panel);
      note.draw(panel, number === 0);
      if (!image || !fits) {
        image = new ImageData(across, down);
        [cells.width, cells.height] = [across, down];
      }
      paint(image, places, panel, layersOn, shades);
      const whole = !panel.missing || isUnscored(panel);
      if (whole !== hatched.hidden) hatched.hidden = whole;
      cells.getContext("2d")!.putImageData(image, 0, 0);
    };
    let laidOut: readonly unknown[] = []; // what ticks and marks were last laid out for
    /** Lay out ticks and marks where something about them changed; says whether it did. */
    const resize = (): boolean => {
      const [picture, { scores }] = [source.picture(), source.state];
      if (!scores || !picture) return false;
      const layout = layoutOf(source.state, picture);
      const { settled } = source.state;
      const now = [scores, settled, picture.layersOn, picture.layerTicks, ...Object.values(layout)];
      if (now.every((part, i) => part === laidOut[i])) return false;
      laidOut = now;
      const { cellWidth, cellHeight, ratio } = layout;
      marks.width = Math.round((cellWidth * layout.across) / ratio + 2 * MARGIN) * ratio;
      marks.height = Math.round((cellHeight * layout.down) / ratio + 2 * MARGIN) * ratio;
      marks.style.width = `${marks.width / ratio}px`;
      marks.style.height = `${marks.height / ratio}px`;
      divide(plot, marks, sectionStarts(scores), picture.layersOn, scores.layers.length);
      const [layerBox, headBox] = picture.layersOn === "y" ? [down, across] : [across, down];
      const length =
        picture.layersOn === "y" ? cellHeight * layout.down : cellWidth * layout.across;
      layerBox.replaceChildren(...layerAxis(scores, length / ratio, picture.layersOn));
      headBox.replaceChildren(make("span", "label", scores.axes[1]));
      if (!settled) return true; // ticks would hold the first frame up by a third of its time
      for (const [box, side] of [
        [rows, "top"],
        [columns, "left"],
      ] as const) {
        const labels = axisTicks(layout, picture, scores, side).map(([at, text]) => {
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
      const { selected, point, box, changed } = source.state;
      const picture = source.picture();
      const any = selected.length + changed.length > 0 || point !== null || box !== null;
      if (picture && (any || marked))
        drawMarks(marks, source.state, layoutOf(source.state, picture), picture.layersOn);
      marked = any;
    };
    const name = (): void => {
      const { scores, selected } = source.state;
      const picture = source.picture();
      if (!scores || !picture) return;
      const grid = `${scores.layers.length} layers by ${scores.heads} heads`;
      const title = picture.panels[number]?.title ?? "";
      el.setAttribute("aria-label", title);
      plot.setAttribute(
        "aria-label",
        `${title}: ${grid}, ${selected.length} selected. ` +
          "Arrow keys move, space selects, question mark lists the keys.",
      );
    };

    const closing = new AbortController();
    listen({ plot, rows, columns }, source, closing.signal);
    resize();
    draw();
    mark();
    name();
    const stop = source.subscribe((changed) => {
      const moved = changed.has("layout");
      const selected = changed.has("selected");
      const resized = moved && resize();
      if (changed.has("scheme") || changed.has("picture")) draw();
      const marked = (["point", "box", "changed"] as const).some((part) => changed.has(part));
      if (resized || selected || marked) mark();
      if (moved || selected) name();
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
      () => closing.abort(),
      () => observer.disconnect(),
    );
  };
}

/** The place of every value among the colours; kept, for panels that show the same values. */
function colourPlaces({ memo }: MapState, picture: Picture, panel: MapPanel): ArrayLike<number> {
  if (scaleOf(picture) === null) return panel.values;
  if (panel.places) return panel.places;
  const { values } = panel;
  const range = rangeIn(picture, panel);
  return memo!.latest(values, [range], () => placesOf(values, range));
}

/** The colours as pixels, and dimmed. Made once: every frame of a drag draws with them. */
function coloursOf(
  { memo, scheme }: MapState,
  picture: Picture,
): readonly [Uint32Array, Uint32Array] {
  const make = () => {
    const categories = categoriesOf(memo!.scores).size;
    const colours = coloursByPlace(scaleOf(picture), scheme, categories);
    return [pixels(colours, 1), pixels(colours, DIMMED)] as const;
  };
  return memo!.once(make, "pixels", picture.colours, scheme);
}

/**
 * One pixel a cell; the browser enlarges it by whole device pixels without smoothing. Heads that
 * were not measured are left out: the hatching behind the cells shows.
 */
function paint(
  { data, width: across, height: down }: ImageData,
  places: ArrayLike<number>,
  { passes, missing }: MapPanel,
  layersOn: "y" | "x",
  [bright, dim]: readonly [Uint32Array, Uint32Array],
): void {
  const out = new Uint32Array(data.buffer);
  for (let y = 0, i = 0; y < down; y++) {
    for (let x = 0; x < across; x++, i++) {
      const cell = layersOn === "y" ? i : x * down + y;
      out[i] = missing?.[cell] ? 0 : (passes && !passes[cell] ? dim : bright)[places[cell]!]!;
    }
  }
}

/** The layer axis' name; in sections a name for each, in its middle, where there is room. */
function layerAxis(scores: Scores, length: number, layersOn: "y" | "x"): HTMLElement[] {
  const names = sectionNames(scores);
  const fit = names.every(({ name, rows }) => rows * length > name.length * LETTER);
  if (!names.length || !fit) {
    const label = make("span", "label", names.length ? "Layer" : scores.axes[0]);
    label.classList.add("hw-layer-axis");
    return [label];
  }
  return names.map(({ name, middle }) => {
    const label = make("span", "label", name);
    label.style[layersOn === "y" ? "top" : "left"] = `${100 * middle}%`;
    return label;
  });
}

/** Lines before the rows that begin a section. */
function divide(
  plot: Element,
  before: Element,
  rows: readonly number[],
  layersOn: "y" | "x",
  count: number,
): void {
  for (const old of plot.querySelectorAll(".hw-divider")) old.remove();
  for (const row of rows) {
    const line = make("div", "divider");
    const at = `${(100 * row) / count}%`;
    Object.assign(
      line.style,
      layersOn === "y"
        ? { top: at, left: "0", width: "100%", height: "1px" }
        : { left: at, top: "0", height: "100%", width: "1px" },
    );
    plot.insertBefore(line, before);
  }
}
