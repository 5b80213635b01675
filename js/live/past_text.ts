// What the list of past runs says of each, and the Python that shows two of them side by side.

import { compareText } from "../display/python_text";
import type { PastRun } from "./lab";

/** How many heads are changed, in words. */
export const headsChanged = (count: number): string =>
  `${count} head${count === 1 ? "" : "s"} changed`;

/** A run in one line. */
export function pastText(run: PastRun): string {
  const { method, options, tasks, prompts, partial, heads, at } = run;
  const facts = [
    options ? `${method} (${options})` : method,
    tasks.length > 2 ? `${tasks.length} tasks` : tasks.join(", "),
    `${prompts} prompt${prompts === 1 ? "" : "s"}`,
    partial ? "stopped" : "",
    heads ? headsChanged(heads) : "",
    at,
  ];
  return facts.filter(Boolean).join(" · ");
}

/** Python that compares what is shown with another run; null where no task is in both. */
export function comparison(runs: readonly PastRun[], index: number): string | null {
  const [first, other] = [runs.findIndex((run) => run.shown), runs[index]];
  const shown = runs[first];
  if (!shown || !other || shown === other) return null;
  if (!shown.tasks.some((task) => other.tasks.includes(task))) return null;
  // Of one method, something else must tell the two apart.
  const names = shown.method === other.method ? namesOf(shown, other) : null;
  return compareText([first, index], names);
}

/** What tells two runs of one method apart; null where nothing is known to. */
function namesOf(...runs: readonly [PastRun, PastRun]): readonly string[] | null {
  const heads = ({ heads }: PastRun): string => (heads ? headsChanged(heads) : "all heads on");
  const times = ({ at }: PastRun): string => at;
  const set = ({ options }: PastRun): string => options ?? "usual options";
  const choices = [heads, set, times].map((name) => runs.map(name));
  return choices.find(([a, b]) => a !== b) ?? null;
}
