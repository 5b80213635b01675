// The Effect tab: what the changed heads do to the tasks, beside the same done to random heads of
// the same layers, and to the text that follows the prompt.

import { all, button, make, setText } from "../panels/dom";
import type { Reads } from "../state";
import { scaleBy } from "./changed";
import { isOut } from "./kernel";
import type { Effect, Lab, Measured } from "./lab";

export const effect =
  (lab: Lab, source: Reads<"selected" | "changed">) =>
  (el: HTMLElement): (() => void) => {
    const scale = make("span", "scale");
    const measure = button(
      "go",
      "Measure on tasks",
      "Right answers before and after, and with random heads of the same layers changed instead",
      () => lab.ask("measure"),
    );
    const note = make("p", "prompt-note");
    const result = make("div", "effect");
    const error = make("div", "error");
    error.setAttribute("role", "alert");
    el.append(make("div", "effect-line", scale, measure), error, note, result);
    const draw = (): void => {
      const { _effect: effect } = lab.state;
      const { changed, selected } = source.state;
      measure.disabled = !changed.length || isOut(lab.state.kernel);
      setText(note, noteText(changed.length, selected.length, effect));
      note.hidden = !note.textContent;
      setText(error, effect.error ?? "");
      error.hidden = !effect.error;
      result.replaceChildren(
        ...table(effect),
        ...(effect.text?.prompt === lab.state.prompt ? texts(effect) : []),
      );
    };
    draw();
    return all(
      scaleBy(lab, source)(scale),
      lab.subscribe((changed) => {
        if (changed.has("_effect") || changed.has("prompt") || changed.has("kernel")) draw();
      }),
      source.subscribe((changed) => {
        if (changed.has("selected") || changed.has("changed")) draw();
      }),
    );
  };

function noteText(changed: number, selected: number, effect: Effect): string {
  if (effect.done === false)
    return effect.of
      ? `Measuring… ${effect.tasks?.length ?? 0} of ${effect.of} tasks`
      : "Measuring…";
  if (!changed)
    return selected
      ? "Turn the selected heads off, or scale them: what changes stands here."
      : "Select heads on a map, then turn them off or scale them.";
  if (effect.tasks?.length) return "";
  return `${changed} head${changed === 1 ? " is" : "s are"} changed. What comes next on the prompt stands above; measure what it does to the tasks.`;
}

function table({ tasks, heads, shared }: Effect): HTMLElement[] {
  if (!tasks?.length) return [];
  const cell = ({ accuracy, log_probability }: Measured): HTMLElement =>
    make(
      "td",
      "small-value",
      make("span", "right", `${Math.round(100 * accuracy)}%`),
      make("span", "log-probability", log_probability.toFixed(2).replace("-", "−")),
    );
  const average = (numbers: readonly number[]): number =>
    numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
  const mean = (controls: readonly Measured[]): HTMLElement =>
    controls.length
      ? cell({
          accuracy: average(controls.map(({ accuracy }) => accuracy)),
          log_probability: average(controls.map(({ log_probability }) => log_probability)),
        })
      : make("td", "small-value", "no other heads there");
  const head = (text: string, title = ""): HTMLElement => {
    const th = make("th", "small-head", text);
    th.scope = "col";
    th.title = title;
    return th;
  };
  const rows = tasks.map((task) => {
    const name = make("th", "small-text", task.name);
    name.scope = "row";
    name.title = `${task.prompts} prompts, ${task.unseen} of them not used for scoring`;
    return make("tr", "small-row", name, cell(task.before), cell(task.after), mean(task.controls));
  });
  const [first] = tasks;
  const draws = first!.controls.length;
  const same = shared ? `; ${shared} of them are among these, for want of others` : "";
  const number = heads === 1 ? "1 head" : `${heads} heads`;
  const heading = make(
    "tr",
    "small-row",
    head("right answers, log-probability"),
    head("before"),
    head("after", `with ${number} changed`),
    head(
      `random ${number}`,
      `random ${number} of the same layers${draws ? `, mean of ${draws}` : ""}${same}`,
    ),
  );
  const seen = tasks.every(({ unseen }) => unseen === 0);
  const prompts = tasks.map((task) => `${task.name}: ${task.unseen} of ${task.prompts}`).join(", ");
  return [
    make(
      "table",
      "effect-table",
      make("thead", "effect-top", heading),
      make("tbody", "effect-body", ...rows),
    ),
    make(
      "p",
      "prompt-note",
      `Random heads are of the same layers, mean of ${draws} draws${same}. ` +
        (seen
          ? "Measured on the prompts that were scored: others would be a fairer test."
          : `Prompts not used for scoring: ${prompts}.`),
    ),
  ];
}

function texts({ text }: Effect): HTMLElement[] {
  if (!text) return [];
  const line = (name: string, words: string): HTMLElement =>
    make("p", "greedy", make("span", "choice-name", name), ` …${words}`);
  return [line("Text before:", text.before), line("Text after:", text.after)];
}
