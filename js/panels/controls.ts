// Above the maps: what is shown, and the threshold with the number of heads that pass it.

import { clean, stepped } from "../scales";
import { numberName, type Panel, passing, type State, shownTasks } from "../store";
import { make } from "./dom";

export const controls: Panel = (el, store) => {
  const model = make("span", "model");
  const about = make("span", "about");
  const slider = make("input", "slider");
  slider.type = "range";
  const value = make("output", "value");
  const count = make("span", "count");
  count.title = "Heads that pass in one of the tasks shown, or more";
  const off = make("button", "off", "Clear");
  off.type = "button";
  off.title = "No threshold";
  const label = make("label", "threshold", make("span", "threshold-name"), slider);
  el.append(make("div", "what", model, about), make("div", "controls", label, value, count, off));

  slider.addEventListener("input", () => {
    const { low, step } = store.state.slider;
    const position = slider.valueAsNumber; // in steps: a range input's own steps pick up rounding errors
    store.sync({ threshold: position === 0 ? null : clean(low + position * step) });
  });
  slider.addEventListener("keydown", (event) => {
    if (/^(Arrow|Home|End|Page)/.test(event.key)) event.stopPropagation(); // else JupyterLab moves to another cell
  });
  off.addEventListener("click", () => store.sync({ threshold: null }));

  const draw = (): void => {
    const { scores, threshold } = store.state;
    el.hidden = !scores;
    if (!scores) return;
    model.textContent = scores.model || "Attention heads";
    about.textContent = [scores.method, runsText(store.state), scores.partial ? "stopped early" : ""]
      .filter(Boolean)
      .join(" · ");
    label.firstChild!.textContent = scores.signed ? `Threshold on |${numberName(scores)}|` : "Threshold";
    const { low, high, step } = store.state.slider;
    slider.max = String(Math.round((high - low) / step));
    slider.value = String(threshold === null ? 0 : Math.round((threshold - low) / step));
    const text = threshold === null ? "off" : stepped(threshold, step);
    value.textContent = text;
    slider.setAttribute("aria-valuetext", text);
    count.textContent = passText(store.state);
    off.disabled = threshold === null;
  };
  draw();
  return store.subscribe((changed) => {
    if (changed.has("scores") || changed.has("threshold") || changed.has("tasks")) draw();
  });
};

function runsText(state: State): string {
  const runs = state.scores!.tasks.map((task) => task.runs);
  const [least, most] = [Math.min(...runs), Math.max(...runs)];
  if (most === 1) return "1 run";
  return `mean of ${least === most ? most : `${least} to ${most}`} runs`;
}

/** How many heads pass in one shown task or more. */
function passText(state: State): string {
  const tasks = shownTasks(state);
  const maps = tasks.map((task) => passing(state, task));
  const heads = state.scores!.layers.length * state.scores!.heads;
  const all = `${heads} ${heads === 1 ? "head" : "heads"}`;
  if (state.threshold === null || !tasks.length) return all;
  const some = new Uint8Array(heads);
  for (const map of maps) for (let i = 0; i < heads; i++) some[i]! |= map![i]!;
  const passed = some.reduce((sum, one) => sum + one, 0);
  return `${passed} of ${all}`;
}
