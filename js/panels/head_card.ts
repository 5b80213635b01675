// A head's number in every task shown, with its 95% interval and its rank: the table that the
// inspector and the card beside the pointer have.

import { formatter, type Range } from "../display/scales";
import type { Settings } from "../display/settings";
import { viewOf } from "../display/views";
import { type Picture, scaleOf } from "../display/views/picture";
import { meanName } from "../display/views/view";
import type { Cell, Scores, TaskScores } from "../scores/head_scores";
import { ends } from "../scores/masks";
import type { Memo } from "../scores/memo";
import { measuredAt, nothingMeasured } from "../scores/missing";
import { rankName, ranks } from "../scores/rank";
import { members, number } from "../scores/threshold";
import type { Asked, State } from "../state";
import { make, setText } from "./dom";

/** What a card is drawn from. */
export type CardState = Pick<State, Asked>;

export interface HeadCard {
  readonly el: HTMLElement;
  draw(state: CardState, picture: Picture, cell: Cell): void;
}

/** An empty card; `draw` fills it for a head. */
export function headCard(): HeadCard {
  const [name, runs] = [make("span", "card-name"), make("span", "card-runs")];
  // The style sheet hides it together with the column of intervals.
  const interval = make("span", "card-interval", ", 95% interval");
  const note = make("p", "card-note", name, interval, runs);
  const body = make("tbody", "card-body");
  const table = make("table", "card-table", body);
  const more = make("div", "card-more");
  const from = make("div", "card-from");
  return {
    el: make("div", "head-card", table, more, note, from),
    draw(state, picture, { row, head }) {
      const { scores, memo } = state;
      if (!scores || !memo) return;
      const cell = row * scores.heads + head;
      const tasks = viewOf(state).tasks(memo, state);
      const range = numberRange(memo, state, tasks);
      body.replaceChildren(...tasks.map((task) => line(memo, state, task, cell, range)));
      const caption = captionOf(scores, state);
      setText(name, caption.name);
      setText(runs, caption.runs);
      interval.hidden = !caption.interval;
      const belongs = scaleOf(picture) === null ? categories(memo, state, cell) : "";
      setText(more, belongs);
      more.hidden = !belongs;
      setText(from, origin(scores));
    },
  };
}

/** Which model and method the numbers are of, and how they were made. */
function origin(scores: Scores): string {
  const { model, method, changed, about, partial } = scores;
  const facts = new Map(about);
  const seed = facts.get("seed");
  return [
    model,
    method,
    changed,
    facts.get("probe"),
    facts.get("dtype"),
    seed && `seed ${seed}`,
    partial && !nothingMeasured(scores) && "stopped early",
  ]
    .filter(Boolean)
    .join(" · ");
}

/** What the numbers are, whether they have an interval, and how they are ranked and repeated. */
function captionOf(
  scores: Scores,
  settings: Settings,
): { readonly name: string; readonly interval: boolean; readonly runs: string } {
  if (nothingMeasured(scores)) return { name: "Not scored yet.", interval: false, runs: "" };
  const runs = [...new Set(scores.tasks.map((task) => task.runs))].sort((a, b) => a - b);
  const runsText =
    runs.length > 1
      ? `${runs[0]} to ${runs[runs.length - 1]} runs`
      : `${runs[0]} run${runs[0] === 1 ? "" : "s"}`;
  const interval = hasInterval(settings) && runs[runs.length - 1]! > 1;
  const name = meanName(scores, settings);
  return { name, interval, runs: ` · ${rankName(scores)} · ${runsText}` };
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
  title.title = task.name;
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
