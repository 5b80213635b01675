// Python that shows the same again: what `hw.explore`, `hw.live` or `hw.compare` would be called
// with.

import type { Scores } from "../scores/head_scores";
import { nothingMeasured } from "../scores/missing";
import { START } from "../scores/threshold";
import { DEFAULTS, type Settings } from "./settings";

/** What a lab is asked for beside an explorer. */
export interface LabWords {
  readonly method: string;
  readonly options: Readonly<Record<string, unknown>>;
  readonly asked: readonly string[];
  readonly prompts: number | null;
  readonly prompt: string;
  readonly target: number | null;
  readonly heed_gates: boolean;
  /** Layer, head, factor. */
  readonly scaled: readonly (readonly [number, number, number])[];
  /** The tasks that it offers. */
  readonly tasks: readonly string[];
}

type Shown = Settings & { readonly selected: readonly (readonly [number, number])[] };

const WIDE = 88; // letters in a line
const LAB = "lab"; // the variable that holds a live explorer

/** The text; with `lab`, of a live explorer, which scores again. */
export function pythonText(
  state: Shown,
  scores: Scores,
  lab: LabWords | null = null,
  from = "scores",
): string {
  if (!lab) {
    const words = changed(state, scores, scores.display ?? {});
    return `import headwidget as hw\n\n${call("hw.explore(", [from, ...words])}\n`;
  }
  // A new lab has all tasks and none of the settings that its method asks for.
  const { tasks, ...rest } = state;
  const all = scores.tasks.map(({ name }) => name);
  const settings = changed({ ...rest, tasks: all }, scores, {});
  const words = [
    "model",
    "tasks",
    `method=${literal(lab.method)}`,
    `prompts=${literal(lab.prompts)}`,
    ...(same(lab.asked, lab.tasks) ? [] : [`asked=${literal(lab.asked)}`]),
    ...(Object.keys(lab.options).length ? [`options=${literal(lab.options)}`] : []),
    ...(lab.prompt ? [`prompt=${literal(lab.prompt)}`] : []),
    ...(lab.target === null ? [] : [`target=${literal(lab.target)}`]),
    ...(lab.heed_gates ? ["heed_gates=True"] : []),
    ...settings,
  ];
  const gates = lab.scaled.map(
    ([layer, head, by]) => `gates[${scores.layers.indexOf(layer)}, ${head}] = ${literal(by)}\n`,
  );
  const copied = `gates = ${LAB}.gates.copy()  # a row a layer, a column a head\n`;
  const scaled = gates.length ? `${copied}${gates.join("")}${LAB}.gates = gates\n` : "";
  const run = nothingMeasured(scores) ? "" : `${LAB}.run()\n`;
  const shown = same(tasks, all) ? "" : `${LAB}.tasks = ${literal(tasks)}\n`;
  const after = scaled + run + shown;
  return `import headwidget as hw\n\n${call(`${LAB} = hw.live(`, words)}\n${after}${LAB}\n`;
}

/** The call that shows two past runs of a lab side by side, by their places in its history. */
export function compareText(
  places: readonly [number, number],
  names: readonly string[] | null = null,
): string {
  const words = places.map((place) => `${LAB}.history[${place}]`);
  const called = names ? [`names=${literal(names)}`] : [];
  return `import headwidget as hw\n\n${call("hw.compare(", [...words, ...called])}\n`;
}

/** Keywords for what is not as a new explorer has it whose method asks to be shown with `asked`. */
function changed(state: Shown, scores: Scores, asked: NonNullable<Scores["display"]>): string[] {
  const { selected, ...settings } = state;
  const usual: Settings = {
    ...DEFAULTS,
    ...asked,
    threshold: state.rule === "value" ? (asked.threshold ?? null) : (START[state.rule] ?? null),
    tasks: scores.tasks.map(({ name }) => name),
  };
  const names = Object.keys(DEFAULTS) as (keyof Settings)[];
  const words = names
    .filter((name) => !same(settings[name], usual[name]))
    .map((name) => `${name}=${literal(settings[name])}`);
  const heads = selected.map(([layer, head]) => `(${layer}, ${head})`);
  return heads.length ? [...words, `selected=[${heads.join(", ")}]`] : words;
}

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

/** A call in one line, or with a line for each argument where that would be too long. */
function call(opening: string, words: readonly string[]): string {
  const line = `${opening}${words.join(", ")})`;
  return line.length <= WIDE
    ? line
    : `${opening}\n${words.map((word) => `    ${word},\n`).join("")})`;
}

/** A value of JSON as Python writes it. */
function literal(value: unknown): string {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (typeof value === "object") {
    const items = Object.entries(value).map(([key, item]) => `${literal(key)}: ${literal(item)}`);
    return `{${items.join(", ")}}`;
  }
  return JSON.stringify(value); // its escapes are Python's, too
}
