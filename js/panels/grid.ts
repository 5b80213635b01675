// The maps of a view in columns chosen by width, and beside them the colour bar or the legend that
// they share.

import { layoutOf, slotsOf } from "../display/layout";
import { isEmpty, scaleOf } from "../display/views/picture";
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

/** What maps, colour bar and legend need together, and when the view began by the page's clock. */
type Source = MapSource &
  Reads<"tasks" | "isolated" | "threshold"> &
  Syncs<"isolated"> & { readonly began: number };

export const grid: Panel<Source> = (el, source) => {
  const maps = make("div", "maps");
  const [bar, classes] = [make("div", "bar"), make("div", "legend")];
  const note = make("p", "note");
  const warnings = make("ul", "warnings");
  el.append(maps, bar, classes, note);
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
      else if (map.figure.parentNode !== maps) maps.append(map.figure);
    });
  };
  const arrange = (): void => {
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
    const { columns, cellWidth, cellHeight, ratio, across, down } = layoutOf(source.state, picture);
    el.style.setProperty("--hw-plot-width", `${(cellWidth * across) / ratio}px`);
    el.style.setProperty("--hw-plot-height", `${(cellHeight * down) / ratio}px`);
    maps.style.gridTemplateColumns = `repeat(${columns}, max-content)`;
    bar.hidden = scaleOf(picture) === null;
    classes.hidden = !bar.hidden;
    const slots = slotsOf(picture, columns);
    Array.from(maps.children).forEach((figure, i) => {
      const [row, column] = slots[i]!;
      (figure as HTMLElement).style.gridArea = `${row + 1} / ${column + 1}`;
      // Axis labels stand at the outer edge only, as in print.
      figure.classList.toggle("hw-first", column === 0);
      figure.classList.toggle("hw-last", !slots.some(([r, c]) => r > row && c === column));
    });
  };
  build();
  arrange();
  const stop = source.subscribe((changed) => {
    if (changed.has("settled") || changed.has("picture")) build();
    if (changed.has("layout")) arrange();
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
