// The threshold: its rule, one slider, the number as it is typed, and how many heads pass.

import { parsed, position, sliderStops, typed, unitOf } from "../display/scales";
import { type Rule, START } from "../display/settings";
import { numberName } from "../display/views";
import { type Panel, PICTURE, type State, type Store } from "../store";
import { button, choice, focused, keepKeys, make, setText } from "./dom";

const RULES: readonly (readonly [Rule, string])[] = [
  ["value", "value"],
  ["top", "top k"],
  ["percent", "top %"],
  ["elbow", "elbow"],
];

export const threshold: Panel = (el, store) => {
  const track = make("input", "slider");
  track.type = "range";
  track.min = "0";
  const value = make("input", "value");
  value.type = "text";
  value.inputMode = "decimal";
  value.placeholder = "off";
  value.autocomplete = "off";
  value.setAttribute("aria-label", "Threshold as a number");
  const count = make("output", "count");
  const clear = button("off", "Clear", "No threshold", () => {
    track.focus(); // the button goes, and the focus with it
    store.sync({ threshold: null });
  });
  const unit = make("span", "unit");
  const rule = choice("Threshold", RULES, (name) =>
    store.sync({ rule: name, threshold: START[name] }),
  );
  el.append(rule.el, make("label", "threshold", unit, track), value, count, clear);
  let stops: readonly number[] = [];

  track.addEventListener("input", () => {
    const at = track.valueAsNumber; // a place among the stops: a range input's own steps pick up rounding errors
    store.sync({ threshold: at === 0 ? null : stops[at - 1]! });
  });
  keepKeys(track);
  keepKeys(value);
  value.addEventListener("change", () => {
    const text = value.value.trim();
    const number = parsed(text);
    if (text === "" || text === "off") store.sync({ threshold: null });
    else if (Number.isFinite(number)) store.sync({ threshold: number });
    else store.show({ spoken: `${text} is not a number; the threshold stays.` });
    draw();
  });
  value.addEventListener("keydown", (event) => {
    if (event.key === "Enter") value.blur();
    if (event.key !== "Escape") return;
    value.value = value.dataset.shown ?? ""; // as it was
    event.stopPropagation();
    value.blur();
  });

  const draw = (): void => {
    const { state } = store;
    const picture = store.picture();
    el.hidden = !picture;
    if (!picture || !state.scores) return;
    rule.select.value = state.rule;
    setText(unit, thresholdUnit(state));
    // Where the slider can stand, and how many heads pass, takes a look at every task: the first frame does without.
    if (state.settled) {
      stops = thresholdStops(state);
      track.max = String(stops.length);
      track.value = String(position(stops, state.threshold));
    }
    const text = state.threshold === null ? "" : typed(state.threshold);
    if (focused(value) !== value || value.dataset.shown === value.value) value.value = text;
    value.dataset.shown = value.value;
    track.setAttribute("aria-valuetext", text || "off");
    setText(count, state.settled ? passText(state, picture.passing) : "");
    count.title =
      state.view === "agreement"
        ? "Heads that reach the threshold in as many runs as the agreement asks for, in one task shown or more"
        : "Heads that pass in one of the tasks shown, or more";
    clear.disabled = state.threshold === null;
  };
  draw();
  return store.subscribe((changed) => {
    if (changed.has("settled") || PICTURE.some((name) => changed.has(name))) draw();
  });
};

/** What the threshold's number is now. */
function thresholdUnit(state: State): string {
  const { scores, rule, normalize, sign } = state;
  const name = state.view === "agreement" && !normalize ? "score" : numberName(scores!, state);
  const compared = { either: `|${name}|`, helps: name, hurts: `−${name}` }; // what the threshold is compared with
  return unitOf(rule, scores!.signed && normalize === null ? compared[sign] : name);
}

/** Where the slider can stand now; worked out again when that may have changed, not while it is dragged. */
function thresholdStops(state: State): readonly number[] {
  const { scores, views, rule } = state;
  const [low, high] = views!.extent(state);
  const heads = scores!.layers.length * scores!.heads;
  return views!.once(() => sliderStops(rule, heads, low, high), "slider", rule, low, high);
}

/** Move the threshold by so many stops of its slider. */
export function nudge(store: Store, by: number): void {
  const { state } = store;
  if (!state.scores) return;
  const stops = thresholdStops(state);
  const at = Math.max(0, Math.min(stops.length, position(stops, state.threshold) + by));
  const stop = at === 0 ? null : stops[at - 1]!;
  const now = state.threshold;
  const next = stop !== null && now !== null && (stop - now) * by < 0 ? now : stop; // beyond the last stop, never back
  store.sync({ threshold: next });
  const passing = store.picture()?.passing ?? null;
  store.show({
    spoken: `Threshold ${next === null ? "off" : typed(next)}, ${passText(store.state, passing)}`,
  });
}

function passText({ scores }: State, passing: Uint8Array | null): string {
  const heads = scores!.layers.length * scores!.heads;
  const all = `${heads} ${heads === 1 ? "head" : "heads"}`;
  if (!passing) return all;
  let passed = 0;
  for (let i = 0; i < passing.length; i++) passed += passing[i]!;
  return `${passed} of ${all}`;
}
