// The maps of a view in columns chosen by width, and beside them the colour bar or the legend that
// they share.

import { isAbove, isStacked, layoutOf, mapSize, slotsOf } from "../display/layout";
import { isEmpty, scaleOf } from "../display/views/picture";
import { nothingMeasured } from "../scores/missing";
import type { MapSource, Panel, Reads, Syncs } from "../state";
import { colourbar } from "./colourbar";
import { all, make } from "./dom";
import { heatmap } from "./heatmap";
import { legend } from "./legend";

/**
 * For so many milliseconds after the view began its first frame takes on maps; the others come
 * with the second.
 */
const FIRST_FRAME = 10;
/** Maps narrower than so many CSS pixels count heads without a word. */
const TIGHT = 110;

/** What maps, colour bar and legend need together, and when the view began by the page's clock. */
type Source = MapSource &
  Reads<"tasks" | "isolated" | "threshold" | "view" | "orientation"> &
  Syncs<"isolated"> & { readonly began: number };

export const grid: Panel<Source> = (el, source) => {
  const maps = make("div", "maps");
  const [bar, classes] = [make("div", "bar"), make("div", "legend")];
  const note = make("p", "note");
  const warnings = make("ul", "warnings");
  maps.append(bar);
  el.append(maps, classes, note);
  el.after(warnings);
  // Maps that are not shown now are kept: the agreement slider adds and removes a column.
  const figures: { readonly figure: HTMLElement; dispose: (() => void) | null }[] = [];

  const build = (): void => {
    const count = source.picture()?.panels.length ?? 0;
    while (figures.length < count) figures.push({ figure: make("figure", "map"), dispose: null });
    figures.forEach((map, i) => {
      const now = source.state.settled || i === 0 || performance.now() - source.began < FIRST_FRAME;
      if (i < count && now) map.dispose ??= heatmap(i)(map.figure, source);
      if (i >= count || !map.dispose) map.figure.remove();
      else if (map.figure.parentNode !== maps) bar.before(map.figure);
    });
  };
  let direction: "y" | "x" | null = null; // of the layers, in the last picture
  /** Where the layers run another way than in the view before, their axis says so. */
  const arrange = (changedView = false): void => {
    const [picture, { scores }] = [source.picture(), source.state];
    const nothing = !picture || isEmpty(picture);
    el.classList.toggle("hw-nothing", nothing);
    note.textContent = nothing && scores ? nothingShown(scores.tasks) : "";
    const doubted = scores?.tasks.filter(
      (task) =>
        task.warning &&
        picture?.panels.some((panel) =>
          panel.task ? panel.task === task.name : source.state.tasks.includes(task.name),
        ),
    );
    warnings.replaceChildren(
      ...(doubted ?? []).map((task) =>
        make("li", "warning", make("strong", "warned", task.name), ` ${task.warning}`),
      ),
    );
    if (!picture) return;
    bar.hidden = scaleOf(picture) === null;
    classes.hidden = !bar.hidden;
    const layout = layoutOf(source.state, picture);
    const [width, height] = mapSize(layout);
    const { columns, span } = layout;
    el.style.setProperty("--hw-plot-width", `${width}px`);
    el.style.setProperty("--hw-plot-height", `${height}px`);
    el.style.setProperty("--hw-span", `${span}`);
    const names = bar.hidden ? [] : picture.panels.map((panel) => panel.title);
    el.classList.toggle("hw-stacked", isStacked(layout, names));
    el.classList.toggle("hw-tight", width < TIGHT);
    el.classList.toggle("hw-unscored-all", scores !== null && nothingMeasured(scores));
    maps.style.gridTemplateColumns = `repeat(${columns * span}, max-content)`;
    const above = isAbove(source.state.width, picture);
    el.classList.toggle("hw-above", above);
    const from = above && !bar.hidden ? 2 : 1; // the row of the first maps
    bar.style.gridArea = above ? "1 / 1 / 2 / -1" : `1 / ${columns * span + 1}`;
    const slots = slotsOf(picture, layout);
    figures.forEach(({ figure }, i) => {
      const slot = slots[i];
      if (!slot) return;
      const [row, column] = slot;
      figure.style.gridArea = `${row + from} / ${column + 1}`;
      // Axis labels stand at the outer edge only, as in print.
      figure.classList.toggle("hw-first", column === 0);
      figure.classList.toggle("hw-last", !slots.some(([r, c]) => r > row && c === column));
      figure.classList.toggle("hw-inner", column % span > 0);
      figure.classList.toggle("hw-outer", Math.floor(column / span) === columns - 1);
    });
    const { layersOn } = picture;
    if (direction && changedView) el.classList.toggle("hw-turned", direction !== layersOn);
    direction = layersOn;
  };
  build();
  arrange();
  const stop = source.subscribe((changed) => {
    if (changed.has("settled") || changed.has("picture")) build();
    if (changed.has("layout")) arrange(changed.has("view") || changed.has("orientation"));
  });
  return all(
    () => warnings.remove(),
    stop,
    colourbar(bar, source),
    legend(classes, source),
    () => {
      for (const { dispose } of figures) dispose?.();
    },
  );
};

const nothingShown = (tasks: readonly { name: string }[]): string => {
  const names = tasks.map((task) => task.name).join(", ");
  return `No task is shown. Choose one above, or set the explorer's tasks to some of: ${names}.`;
};
