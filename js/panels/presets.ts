// A menu of thresholds with a name: each sets the rule, its number and the agreement at once.

import { viewOf } from "../display/views";
import { START, type Threshold } from "../scores/threshold";
import type { Asked, Panel, Reads, Syncs } from "../state";
import { button } from "./dom";
import { popup } from "./popup";

type Preset = Pick<Threshold, "rule" | "threshold"> & { readonly agreement: number };
type Source = Reads<Asked> & Syncs<"rule" | "threshold" | "agreement">;

/** Every preset by its name; of those about runs the threshold is the one there is. */
const PRESETS: readonly {
  readonly name: string;
  readonly about: string;
  readonly runs?: true;
  of(now: Preset): Preset;
}[] = [
  {
    name: "Top 10",
    about: "The ten strongest heads of each task",
    of: () => ({ rule: "top", threshold: 10, agreement: 1 }),
  },
  {
    name: "Top 5%",
    about: "The strongest twentieth of each task’s heads",
    of: () => ({ rule: "percent", threshold: 5, agreement: 1 }),
  },
  {
    name: "Elbow",
    about: "Heads before the curve of sorted scores flattens, in each task",
    of: () => ({ rule: "elbow", threshold: 1, agreement: 1 }),
  },
  {
    name: "In half the runs",
    about: "Heads that reach the threshold, or the elbow without one, in half of the runs or more",
    runs: true,
    of: (now) => ({ ...withThreshold(now), agreement: 0.5 }),
  },
  {
    name: "In every run",
    about: "Heads that reach the threshold, or the elbow without one, in every run",
    runs: true,
    of: (now) => ({ ...withThreshold(now), agreement: 1 }),
  },
  {
    name: "No threshold",
    about: "Every head",
    of: () => ({ rule: "value", threshold: null, agreement: 1 }),
  },
];

const withThreshold = (now: Preset): Preset =>
  now.threshold === null ? { ...now, rule: "elbow", threshold: START.elbow } : now;

export const presets: Panel<Source> = (el, source) =>
  popup(el, "Presets", (box) => {
    const items = PRESETS.map(({ name, about, runs, of }) => {
      const item = button("menu-item", name, about, () => {
        const { rule, threshold, agreement } = source.state;
        source.sync(of({ rule, threshold, agreement }));
        (el as HTMLDetailsElement).open = false;
        el.querySelector("summary")?.focus({ preventScroll: true });
      });
      return { item, runs };
    });
    box.append(...items.map(({ item }) => item));
    const draw = (): void => {
      const { scores } = source.state;
      const many = scores?.tasks.some((task) => task.runs > 1) ?? false;
      const agrees = many && viewOf(source.state).uses.has("agreement");
      for (const { item, runs } of items) item.hidden = runs === true && !agrees;
    };
    draw();
    return source.subscribe((changed) => {
      if (changed.has("view") || changed.has("scores")) draw();
    });
  });
