// What is shown, as the fragment of an exported page's address, and back.

import type { Head, Scores } from "../scores/head_scores";
import { START } from "../scores/threshold";
import { DEFAULTS, type Settings } from "./settings";
import { VIEWS } from "./views";

/** Settings and selection. */
export type Linked = Settings & { readonly selected: readonly Head[] };
type Known = Pick<Scores, "layers" | "heads" | "tasks">;

const MARK = "#show=";

/** The fragment for what differs from how the page shows it at first. */
export function fragmentOf(state: Linked, first: Linked): string {
  const names = [...Object.keys(DEFAULTS), "selected"] as (keyof Linked)[];
  const other = names.filter((name) => JSON.stringify(state[name]) !== JSON.stringify(first[name]));
  const values = Object.fromEntries(other.map((name) => [name, state[name]]));
  return MARK + encodeURIComponent(JSON.stringify(values));
}

/**
 * What a fragment asks for: nothing where it is not one of ours, an error's sentence where it does
 * not fit these scores.
 */
export function linked(fragment: string, scores: Known): Partial<Linked> {
  if (!fragment.startsWith(MARK)) return {};
  let values: unknown;
  try {
    values = JSON.parse(decodeURIComponent(fragment.slice(MARK.length)));
  } catch {
    throw new Error("it cannot be read");
  }
  if (typeof values !== "object" || values === null || Array.isArray(values))
    throw new Error("it cannot be read");
  for (const [name, value] of Object.entries(values)) {
    const fits = Object.hasOwn(CHECKS, name) && CHECKS[name as keyof Linked](value, scores);
    if (!fits) throw new Error(`${name} cannot be ${JSON.stringify(value)} here`);
  }
  const fitting = values as Partial<Linked>;
  return fitting.selected ? { ...fitting, selected: once(fitting.selected) } : fitting;
}

/** Each head once, in the order of the first. */
const once = (heads: readonly Head[]): Head[] => [
  ...new Map(heads.map((head) => [`${head}`, head])).values(),
];

type Check = (value: unknown, scores: Known) => boolean;

const isNumber = (value: unknown): value is number =>
  typeof value === "number" && Number.isFinite(value);
const isOneOf =
  (...choices: readonly (string | null)[]): Check =>
  (value) =>
    choices.includes(value as string | null);
const isTask: Check = (value, { tasks }) => tasks.some(({ name }) => name === value);
const isHead: Check = (value, { layers, heads }) =>
  Array.isArray(value) &&
  value.length === 2 &&
  layers.includes(value[0]) &&
  Number.isInteger(value[1]) &&
  value[1] >= 0 &&
  value[1] < heads;
const isListOf =
  (check: Check): Check =>
  (value, scores) =>
    Array.isArray(value) && value.every((item) => check(item, scores));
const LEAST_SCORE = 2 ** -149; // float32's smallest number above 0
const LARGEST_SCORE = (2 - 2 ** -23) * 2 ** 127; // and its largest finite one
const isCap: Check = (value) =>
  value === null ||
  (isNumber(value)
    ? value >= LEAST_SCORE && value <= LARGEST_SCORE
    : typeof value === "string" &&
      /^\d+(\.\d+)?%$/.test(value) &&
      parseFloat(value) > 0 &&
      parseFloat(value) <= 100);

/** Does a value fit? As headwidget/display/settings.py has it. */
const CHECKS: Readonly<Record<keyof Linked, Check>> = {
  view: isOneOf(...Object.keys(VIEWS)),
  tasks: (value, scores) =>
    isListOf(isTask)(value, scores) && new Set(value as string[]).size === (value as []).length,
  task: (value, scores) => value === null || isTask(value, scores),
  threshold: (value) => value === null || isNumber(value),
  rule: isOneOf(...Object.keys(START)),
  agreement: (value) => isNumber(value) && value >= 0 && value <= 1,
  sign: isOneOf("either", "helps", "hurts"),
  reduction: isOneOf("mean", "median"),
  normalize: isOneOf(null, "share"),
  colormap: isOneOf(null, "viridis", "cividis", "magma", "turbo", "blue-orange"),
  scale: isOneOf("shared", "own"),
  cap: isCap,
  orientation: isOneOf(null, "y", "x"),
  columns: (value) => value === null || (Number.isSafeInteger(value) && (value as number) >= 1),
  isolated: (value) => value === null || typeof value === "string",
  selected: isListOf(isHead),
};
