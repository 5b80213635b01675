// The tasks view: one heatmap a task in columns chosen by width, and the colour bar they share.

import { layoutOf, type Panel, shownTasks } from "../store";
import { colourbar } from "./colourbar";
import { all, make } from "./dom";
import { heatmap } from "./heatmap";

export const grid: Panel = (el, store) => {
  const maps = make("div", "maps");
  const bar = make("div", "bar");
  const note = make("p", "note");
  el.append(maps, bar, note);
  let disposes: (() => void)[] = [];

  const build = (): void => {
    for (const dispose of disposes) dispose();
    const tasks = shownTasks(store.state);
    const figures = tasks.map(() => make("figure", "map"));
    maps.replaceChildren(...figures);
    disposes = figures.map((figure, i) => heatmap(tasks[i]!.name)(figure, store));
    note.textContent = tasks.length || !store.state.scores ? "" : nothingShown(store.state.scores.tasks);
    el.classList.toggle("hw-nothing", !tasks.length);
  };
  const arrange = (): void => {
    const { columns, cellWidth, cellHeight, ratio } = layoutOf(store.state);
    const { heads = 0, layers = [] } = store.state.scores ?? {};
    el.style.setProperty("--hw-plot-width", `${(cellWidth * heads) / ratio}px`);
    el.style.setProperty("--hw-plot-height", `${(cellHeight * layers.length) / ratio}px`);
    maps.style.gridTemplateColumns = `repeat(${columns}, max-content)`;
    // Axis labels stand at the outer edge only, as in print.
    Array.from(maps.children).forEach((figure, i) => {
      figure.classList.toggle("hw-first", i % columns === 0);
      figure.classList.toggle("hw-last", i + columns >= maps.children.length);
    });
  };
  build();
  arrange();
  const stop = store.subscribe((changed) => {
    if (changed.has("tasks") || changed.has("scores")) build();
    if (["tasks", "scores", "width", "ratio"].some((name) => changed.has(name as never))) arrange();
  });
  return all(stop, colourbar(bar, store), () => {
    for (const dispose of disposes) dispose();
  });
};

const nothingShown = (tasks: readonly { name: string }[]): string =>
  `No task is shown. Set the explorer's tasks to some of: ${tasks.map((task) => task.name).join(", ")}.`;
