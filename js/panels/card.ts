// The card beside the pointer: which head it is, and its number with the 95% interval and its
// rank in every task shown.

import { formatter, type Range } from "../display/scales";
import type { Settings } from "../display/settings";
import { viewOf } from "../display/views";
import { scaleOf } from "../display/views/picture";
import { meanName } from "../display/views/view";
import { headAt, headName, type Scores, type TaskScores } from "../scores/head_scores";
import { ends } from "../scores/masks";
import type { Memo } from "../scores/memo";
import { measuredAt } from "../scores/missing";
import { rankName, ranks } from "../scores/rank";
import { members, number } from "../scores/threshold";
import type { Asked, Draws, Panel, Reads } from "../state";
import { make, setText } from "./dom";

const AWAY = 16; // CSS pixels between pointer and card

export const card: Panel<Reads<Asked | "point"> & Draws> = (el, source) => {
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
    const { state } = source;
    const { scores, memo, point } = state;
    el.hidden = !scores || !point?.place;
    if (!scores || !memo || !point?.place) return;
    const cell = point.row * scores.heads + point.head;
    const picture = source.picture()!;
    const tasks = viewOf(state).tasks(memo, state);
    setText(name, headName(scores, headAt(scores, point)));
    setText(note, noteText(scores, state));
    const range = numberRange(memo, state, tasks);
    body.replaceChildren(...tasks.map((task) => line(memo, state, task, cell, range)));
    const belongs = scaleOf(picture) === null ? categories(memo, state, cell) : "";
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
  return source.subscribe((changed) => {
    if (changed.has("point") || (!el.hidden && changed.has("picture"))) draw();
  });
};

function noteText(scores: Scores, settings: Settings): string {
  const runs = [...new Set(scores.tasks.map((task) => task.runs))].sort((a, b) => a - b);
  const runsText =
    runs.length > 1
      ? `${runs[0]} to ${runs[runs.length - 1]} runs`
      : `${runs[0]} run${runs[0] === 1 ? "" : "s"}`;
  const interval = hasInterval(settings) && runs[runs.length - 1]! > 1;
  const name = meanName(scores, settings);
  return `${name}${interval ? ", 95% interval" : ""} · ${rankName(scores)} · ${runsText}`;
}

/** Is there an interval of the number shown? There is one of the mean alone. */
const hasInterval = ({ reduction, normalize }: Settings): boolean =>
  reduction === "mean" && !normalize;

/** What the small bars span: every number of the tasks shown. */
function numberRange(memo: Memo, settings: Settings, tasks: readonly TaskScores[]): Range {
  let [low, high] = ends(tasks.map((task) => number(memo, task, settings)));
  if (memo.scores.signed && !settings.normalize)
    [low, high] = [Math.min(low, -high), Math.max(high, -low)];
  return { low, high: high || 1, step: 1, lowCapped: false, highCapped: false };
}

/** The row of a task: bar, number, interval, rank, and how many runs reach the threshold. */
function line(
  memo: Memo,
  settings: Settings,
  task: TaskScores,
  cell: number,
  range: Range,
): HTMLElement {
  const { scores } = memo;
  const view = viewOf(settings);
  const value = number(memo, task, settings)[cell]!;
  const format = formatter(range);
  const interval = hasInterval(settings) && measuredAt(task, cell) > 1;
  const [low, high] = interval ? [task.low[cell]!, task.high[cell]!] : [value, value];
  const colour =
    !scores.signed || settings.normalize ? "bar-score" : value < 0 ? "bar-less" : "bar-more";
  const reached = view.reached(memo, task, settings)?.[cell];
  const passes = view.passes(memo, task, settings)?.[cell] ?? 1;
  const title = make("th", "card-task", `${task.warning ? "⚠ " : ""}${task.name}`);
  title.scope = "row";
  const runs = measuredAt(task, cell);
  if (runs === 0) {
    const none = make("td", "card-none", "not measured");
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
    make("td", "card-rank", `#${ranks(memo, task)[cell]}`),
    make("td", "card-reach", runsText(reached, runs, task.runs)),
  );
  row.classList.toggle("hw-below", !passes);
  return row;
}

/** How many runs reach the threshold, and in how many the head was measured where not in all. */
function runsText(reached: number | undefined, measured: number, all: number): string {
  const those = measured < all ? `, of ${all}` : "";
  if (reached !== undefined) return `${reached} of ${measured} runs${those && ` measured${those}`}`;
  return those ? `${measured} runs measured${those}` : "";
}

/** The categories that a head belongs to. */
function categories(memo: Memo, settings: Settings, cell: number): string {
  const names = [...members(memo, settings)].filter(([, mask]) => mask[cell]);
  return names.map(([category]) => category).join(", ") || "Unclassified";
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
  const root = (el.offsetParent ?? el.parentElement!) as HTMLElement;
  const seen = root.getBoundingClientRect();
  const around = { width: root.offsetWidth, height: root.offsetHeight };
  const zoom = seen.width / around.width || 1; // larger text makes a pixel of ours larger, too
  const [width, height] = [el.offsetWidth, el.offsetHeight];
  const [atX, atY] = [(x - seen.left) / zoom, (y - seen.top) / zoom];
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
