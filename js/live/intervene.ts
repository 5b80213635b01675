// Selected heads off, or scaled: what that does to the tasks, beside the same done to random heads
// of the same layers, and to the text that follows.

import { all, button, keepKeys, make, setText } from "../panels/dom";
import type { Panel, Reads } from "../state";
import type { Effect, Lab, Measured } from "./lab";

export const intervene =
  (lab: Lab): Panel<Reads<"selected">> =>
  (el, source) => {
    const factor = make("input", "slider");
    factor.type = "range";
    [factor.min, factor.max, factor.step, factor.value] = ["0", "3", "0.05", "0"];
    factor.setAttribute("aria-label", "What the selected heads' outputs are multiplied by");
    keepKeys(factor);
    const value = make("output", "factor");
    const scale = (by: number): void => {
      const chosen = source.state.selected;
      const others = lab.state._scaled.filter(
        ([l, h]) => !chosen.some(([a, b]) => a === l && b === h),
      );
      const scaled = by === 1 ? [] : chosen.map(([l, h]) => [l, h, by] as const);
      lab.set({ _scaled: [...others, ...scaled] });
      draw();
    };
    factor.addEventListener("input", () => {
      setText(value, `× ${factor.value}`);
    });
    factor.addEventListener("change", () => scale(factor.valueAsNumber));
    const off = button(
      "off",
      "Turn selected off",
      "Multiply the selected heads' outputs by 0",
      () => {
        factor.value = "0";
        scale(0);
      },
    );
    const restore = button("off", "Restore all", "All heads as they are", () => {
      lab.set({ _scaled: [] });
      draw();
    });
    const measure = button(
      "go",
      "Measure on tasks",
      "Before, after, and random heads of the same layers",
      () => lab.ask("measure"),
    );
    const note = make("span", "run-text");
    const result = make("div", "effect");
    const error = make("div", "error");
    error.setAttribute("role", "alert");
    el.append(
      make("h3", "live-name", "Intervene"),
      make(
        "div",
        "run-line",
        off,
        make("label", "choice", make("span", "choice-name", "or scale them"), factor, value),
        restore,
        measure,
        note,
      ),
      error,
      result,
    );
    const draw = (): void => {
      const { _scaled: scaled, _effect: effect } = lab.state;
      const chosen = source.state.selected.length;
      off.disabled = factor.disabled = !chosen;
      restore.disabled = measure.disabled = !scaled.length;
      setText(value, `× ${factor.value}`);
      const now = scaled.length
        ? `${scaled.length} head${scaled.length === 1 ? "" : "s"} scaled`
        : "no head is scaled";
      setText(
        note,
        effect.done === false
          ? `${now}; measuring…`
          : chosen || scaled.length
            ? now
            : "Select heads first.",
      );
      setText(error, effect.error ?? "");
      error.hidden = !effect.error;
      result.replaceChildren(
        ...table(effect),
        ...(effect.text?.prompt === lab.state.prompt ? texts(effect) : []),
      );
    };
    draw();
    return all(
      lab.subscribe((changed) => {
        if (changed.has("_scaled") || changed.has("_effect") || changed.has("prompt")) draw();
      }),
      source.subscribe((changed) => {
        if (changed.has("selected")) draw();
      }),
    );
  };

function table({ tasks, heads, shared }: Effect): HTMLElement[] {
  if (!tasks?.length) return [];
  const cell = ({ accuracy, log_probability }: Measured): string =>
    `${Math.round(100 * accuracy)}% (${log_probability.toFixed(2).replace("-", "−")})`;
  const average = (numbers: readonly number[]): number =>
    numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
  const mean = (controls: readonly Measured[]): string =>
    controls.length
      ? cell({
          accuracy: average(controls.map(({ accuracy }) => accuracy)),
          log_probability: average(controls.map(({ log_probability }) => log_probability)),
        })
      : "no other heads there";
  const head = (text: string): HTMLElement => {
    const th = make("th", "small-head", text);
    th.scope = "col";
    return th;
  };
  const draws = tasks[0]!.controls.length;
  const rows = tasks.map((task) => {
    const name = make(
      "th",
      "small-text",
      `${task.name} (${task.prompts} prompts, ${task.unseen} not scored before)`,
    );
    name.scope = "row";
    const values = [cell(task.before), cell(task.after), mean(task.controls)];
    return make("tr", "small-row", name, ...values.map((text) => make("td", "small-value", text)));
  });
  const drawn = draws ? `, mean of ${draws}` : "";
  const same = shared ? `; ${shared} of them are among these, for want of others` : "";
  const heading = make(
    "tr",
    "small-row",
    head("accuracy (log p)"),
    head("before"),
    head(`these ${heads}`),
    head(`random ${heads} of the same layers${drawn}${same}`),
  );
  return [
    make(
      "table",
      "effect-table",
      make("thead", "effect-top", heading),
      make("tbody", "effect-body", ...rows),
    ),
  ];
}

function texts({ text }: Effect): HTMLElement[] {
  if (!text) return [];
  const line = (name: string, words: string): HTMLElement =>
    make("p", "greedy", make("span", "choice-name", name), ` …${words}`);
  return [line("goes on, before:", text.before), line("after:", text.after)];
}
