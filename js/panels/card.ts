// The card beside the pointer: which head it is, and its number with the 95% interval and its rank in every task shown.

import { formatter, type Range } from "../display/scales";
import { categoriesOf, forCategories, numberName, shownTasks } from "../display/views";
import type { TaskScores } from "../display/wire";
import { headAt, headName, type Panel, PICTURE, type State } from "../store";
import { make, setText } from "./dom";

const AWAY = 16; // CSS pixels between pointer and card

export const card: Panel = (el, store) => {
  const name = make("strong", "card-head");
  const note = make("span", "card-note");
  const body = make("tbody", "card-body");
  const table = make("table", "card-table", body);
  const more = make("div", "card-more");
  const from = make("div", "card-from");
  el.append(make("div", "card-title", name, note), table, more, from);
  el.hidden = true;
  el.setAttribute("aria-hidden", "true"); // what a key points at is read from the status line

  const draw = (): void => {
    const { state } = store;
    const { scores, point } = state;
    el.hidden = !scores || !point?.place;
    if (!scores || !point?.place) return;
    const cell = point.row * scores.heads + point.head;
    const picture = store.picture()!;
    const tasks = shownTasks(state);
    setText(name, headName(headAt(scores, point)));
    setText(note, noteText(state));
    const range = numberRange(state, tasks);
    body.replaceChildren(...tasks.map((task) => line(state, task, cell, range)));
    const belongs = picture.colours === "categories" ? categories(state, cell) : "";
    setText(more, belongs);
    more.hidden = !belongs;
    const about = new Map(scores.about);
    setText(
      from,
      [
        scores.model,
        scores.method,
        about.get("probe"),
        about.get("dtype"),
        about.get("seed") && `seed ${about.get("seed")}`,
        scores.partial && "stopped early",
      ]
        .filter(Boolean)
        .join(" · "),
    );
    place(el, point.place.x, point.place.y);
  };
  return store.subscribe((changed) => {
    if (changed.has("point") || (!el.hidden && PICTURE.some((what) => changed.has(what)))) draw();
  });
};

function noteText(state: State): string {
  const { scores } = state;
  const runs = [...new Set(scores!.tasks.map((task) => task.runs))].sort((a, b) => a - b);
  const many =
    runs.length > 1
      ? `${runs[0]} to ${runs[runs.length - 1]} runs`
      : `${runs[0]} run${runs[0] === 1 ? "" : "s"}`;
  const interval = state.reduction === "mean" && !state.normalize && runs[runs.length - 1]! > 1;
  return `${numberName(scores!, state)}${interval ? ", 95% interval" : ""} · rank · ${many}`;
}

/** What the small bars span: every number of the tasks shown. */
function numberRange(state: State, tasks: readonly TaskScores[]): Range {
  const { views, scores } = state;
  let [low, high] = [0, 0];
  for (const task of tasks) {
    const map = views!.number(task, state);
    for (let i = 0; i < map.length; i++) {
      if (map[i]! < low) low = map[i]!;
      if (map[i]! > high) high = map[i]!;
    }
  }
  if (scores!.signed && !state.normalize)
    [low, high] = [Math.min(low, -high), Math.max(high, -low)];
  return { low, high: high || 1, step: 1, lowCapped: false, highCapped: false };
}

function line(state: State, task: TaskScores, cell: number, range: Range): HTMLElement {
  const { scores, views } = state;
  const map = views!.number(task, state);
  const value = map[cell]!;
  const format = formatter(range);
  const interval = state.reduction === "mean" && !state.normalize && task.runs > 1;
  const [low, high] = interval ? [task.low[cell]!, task.high[cell]!] : [value, value];
  const colour =
    !scores!.signed || state.normalize ? "bar-score" : value < 0 ? "bar-less" : "bar-more";
  const reach = state.view === "agreement" ? (views!.counts(task, state)?.[cell] ?? null) : null;
  const passes = views!.passesIn(task, state)?.[cell] ?? 1;
  const title = make("th", "card-task", `${task.warning ? "⚠ " : ""}${task.name}`);
  title.scope = "row";
  if (task.unscored?.includes(Math.floor(cell / scores!.heads))) {
    const none = make("td", "card-none", "not scored yet");
    none.colSpan = 5;
    return make("tr", "card-row", title, none);
  }
  const row = make(
    "tr",
    "card-row",
    title,
    make("td", "card-bar", bar(colour, value, low, high, range)),
    make("td", "card-value", format(value)),
    make("td", "card-interval", interval ? `${format(low)} to ${format(high)}` : ""),
    make("td", "card-rank", `#${rank(views!.strength(task, state), cell)}`),
    make("td", "card-reach", reach === null ? "" : `${reach} of ${task.runs} runs`),
  );
  row.classList.toggle("hw-below", !passes);
  return row;
}

/** 1 for the strongest head; heads that tie share a rank. */
function rank(strengths: ArrayLike<number>, cell: number): number {
  let above = 0;
  for (let i = 0; i < strengths.length; i++) if (strengths[i]! > strengths[cell]!) above++;
  return above + 1;
}

function categories(state: State, cell: number): string {
  const at = forCategories(state);
  const names = [...categoriesOf(state.scores!)].flatMap(([category, tasks]) =>
    tasks.some((name) => {
      const task = state.scores!.tasks.find((one) => one.name === name)!;
      return state.tasks.includes(name) && state.views!.passing(task, at)![cell];
    })
      ? [category]
      : [],
  );
  return names.length ? names.join(", ") : "Unclassified";
}

/** A bar from zero to the number with a line over the interval. */
function bar(name: string, value: number, low: number, high: number, range: Range): HTMLElement {
  const at = (number: number): number =>
    100 * Math.max(0, Math.min(1, (number - range.low) / (range.high - range.low || 1)));
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
    span(make("span", name), 0, value),
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
