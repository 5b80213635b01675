// The maps of a view in columns chosen by width, and beside them the colour bar or the legend they share.

import { layoutOf, slotsOf } from "../display/layout";
import { type Panel, PICTURE } from "../store";
import { colourbar } from "./colourbar";
import { all, make } from "./dom";
import { heatmap } from "./heatmap";
import { legend } from "./legend";

/** For so many milliseconds after the view began its first frame takes on maps; the others come with the second. */
const FIRST_FRAME = 10;

export const grid: Panel = (el, store) => {
  const maps = make("div", "maps");
  const [bar, classes] = [make("div", "bar"), make("div", "legend")];
  const note = make("p", "note");
  const warnings = make("ul", "warnings");
  el.append(maps, bar, classes, note);
  el.after(warnings);
  // Maps that are not needed for now stay at hand: a column of them comes and goes with the ends of the agreement slider.
  const made: { readonly figure: HTMLElement; dispose: (() => void) | null }[] = [];

  const build = (): void => {
    const count = store.picture()?.panels.length ?? 0;
    while (made.length < count) made.push({ figure: make("figure", "map"), dispose: null });
    made.forEach((map, i) => {
      const now = store.state.settled || i === 0 || performance.now() - store.began < FIRST_FRAME;
      if (i < count && now) map.dispose ??= heatmap(i)(map.figure, store);
      if (i >= count || !map.dispose) map.figure.remove();
      else if (map.figure.parentNode !== maps) maps.append(map.figure);
    });
  };
  const arrange = (): void => {
    const [picture, { scores }] = [store.picture(), store.state];
    const empty =
      !picture?.panels.some((panel) => panel.task !== null) && picture?.colours !== "categories";
    const nothing = empty || (picture?.panels.length === 1 && picture.colours === "categories");
    el.classList.toggle("hw-nothing", nothing);
    note.textContent = nothing && scores ? nothingShown(scores.tasks) : "";
    const doubted = scores?.tasks.filter(
      (task) =>
        task.warning &&
        picture?.panels.some(
          (p) => p.task === task.name || (!p.task && store.state.tasks.includes(task.name)),
        ),
    );
    warnings.replaceChildren(
      ...(doubted ?? []).map((task) =>
        make("li", "warning", make("strong", "warned", task.name), ` ${task.warning}`),
      ),
    );
    if (!picture) return;
    const { columns, cellWidth, cellHeight, ratio, across, down } = layoutOf(store.state, picture);
    el.style.setProperty("--hw-plot-width", `${(cellWidth * across) / ratio}px`);
    el.style.setProperty("--hw-plot-height", `${(cellHeight * down) / ratio}px`);
    maps.style.gridTemplateColumns = `repeat(${columns}, max-content)`;
    bar.hidden = picture.colours === "categories";
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
  const stop = store.subscribe((changed) => {
    if (changed.has("settled") || PICTURE.some((name) => changed.has(name))) build();
    if (
      ["settled", "width", "ratio", ...PICTURE].some(
        (name) => name !== "threshold" && changed.has(name as never),
      )
    )
      arrange();
  });
  return all(
    () => warnings.remove(),
    stop,
    colourbar(bar, store),
    legend(classes, store),
    () => {
      for (const { dispose } of made) dispose?.();
    },
  );
};

const nothingShown = (tasks: readonly { name: string }[]): string =>
  `No task is shown. Choose one above, or set the explorer's tasks to some of: ${tasks.map((task) => task.name).join(", ")}.`;
