// The card beside the pointer: which head it is, and its mean with the 95% interval in every task shown.

import { formatter, type Range } from "../scales";
import { headAt, headName, type Panel, shownTasks } from "../store";
import type { TaskScores } from "../wire";
import { make } from "./dom";

const AWAY = 16; // CSS pixels between pointer and card

export const card: Panel = (el, store) => {
  const name = make("strong", "card-head");
  const note = make("span", "card-note");
  const table = make("table", "card-table");
  const body = make("tbody", "card-body");
  table.append(body);
  el.append(make("div", "card-title", name, note), table);
  el.hidden = true;
  el.setAttribute("role", "status"); // read aloud when the keyboard moves the cursor

  const draw = (): void => {
    const { scores, hover } = store.state;
    el.hidden = !scores || !hover;
    if (!scores || !hover) return;
    const cell = hover.row * scores.heads + hover.head;
    const format = formatter(store.state.range);
    const tasks = shownTasks(store.state);
    name.textContent = headName(headAt(scores, hover));
    note.textContent = tasks.some((task) => task.runs > 1) ? "mean, 95% interval" : "1 run";
    body.replaceChildren(...tasks.map((task) => line(task, cell, scores.signed, store.state.range, format)));
    place(el, hover.x, hover.y);
  };
  return store.subscribe((changed) => {
    if (changed.has("hover") || changed.has("scores") || changed.has("tasks")) draw();
  });
};

function line(
  task: TaskScores,
  cell: number,
  signed: boolean,
  range: Range,
  format: (value: number) => string,
): HTMLElement {
  const [mean, low, high] = [task.mean[cell]!, task.low[cell]!, task.high[cell]!];
  const colour = !signed ? "bar-score" : mean < 0 ? "bar-less" : "bar-more";
  const row = make("tr", "card-row");
  const title = make("th", "card-task", task.name);
  title.scope = "row";
  row.append(
    title,
    make("td", "card-bar", bar(colour, mean, low, high, range)),
    make("td", "card-value", format(mean)),
    make("td", "card-interval", task.runs > 1 ? `${format(low)} to ${format(high)}` : ""),
  );
  return row;
}

/** A bar from zero to the mean with a line over the interval, on the scale of the colours. */
function bar(name: string, mean: number, low: number, high: number, range: Range): HTMLElement {
  const at = (value: number): number =>
    100 * Math.max(0, Math.min(1, (value - range.low) / (range.high - range.low || 1)));
  const span = (el: HTMLElement, a: number, b: number): HTMLElement => {
    el.style.left = `${Math.min(at(a), at(b))}%`;
    el.style.width = `${Math.abs(at(b) - at(a))}%`;
    return el;
  };
  const zero = make("span", "bar-zero");
  zero.style.left = `${at(0)}%`;
  return make(
    "div",
    "bar-track",
    span(make("span", name), 0, mean),
    span(make("span", "bar-interval"), low, high),
    zero,
  );
}

/** Beside the pointer and inside the widget, where no output area cuts it off. */
function place(el: HTMLElement, x: number, y: number): void {
  const around = (el.offsetParent ?? el.parentElement!).getBoundingClientRect();
  const [width, height] = [el.offsetWidth, el.offsetHeight];
  const [atX, atY] = [x - around.left, y - around.top];
  const clamp = (value: number, most: number): number => Math.max(0, Math.min(value, most));
  let left = atX + AWAY;
  let top = clamp(atY - height / 2, around.height - height);
  if (left + width > around.width) left = atX - AWAY - width;
  if (left < 0) {
    left = clamp(atX - width / 2, around.width - width); // room on neither side: below, else above
    top = atY + AWAY + height <= around.height ? atY + AWAY : Math.max(0, atY - AWAY - height);
  }
  el.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
}
