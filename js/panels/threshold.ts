// The threshold: its rule, one slider, the number as it is typed, and how many heads pass.

import { parsed, position, sliderStops, typed, unitOf } from "../display/scales";
import type { Settings } from "../display/settings";
import { viewOf } from "../display/views";
import type { Scores } from "../scores/head_scores";
import type { Memo } from "../scores/memo";
import { type Rule, START } from "../scores/threshold";
import type { Asked, Draws, Panel, Reads, Shows, Syncs } from "../state";
import { button, choice, focused, keepKeys, make, setText } from "./dom";

const RULES: readonly (readonly [Rule, string])[] = [
  ["value", "value"],
  ["top", "top k"],
  ["percent", "top %"],
  ["elbow", "elbow"],
];

type Source = Reads<Asked | "settled"> & Draws & Syncs<"threshold" | "rule"> & Shows<"spoken">;

export const threshold: Panel<Source> = (el, source) => {
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
    source.sync({ threshold: null });
  });
  const unit = make("span", "unit");
  const rule = choice("Threshold", RULES, (name) =>
    source.sync({ rule: name, threshold: START[name] }),
  );
  el.append(rule.el, make("label", "threshold", unit, track), value, count, clear);
  let stops: readonly number[] = [];

  track.addEventListener("input", () => {
    // A place among the stops: a range input's own steps pick up rounding errors.
    const at = track.valueAsNumber;
    source.sync({ threshold: at === 0 ? null : stops[at - 1]! });
  });
  keepKeys(track);
  keepKeys(value);
  value.addEventListener("change", () => {
    const text = value.value.trim();
    const number = parsed(text);
    if (text === "" || text === "off") source.sync({ threshold: null });
    else if (Number.isFinite(number)) source.sync({ threshold: number });
    else source.show({ spoken: `${text} is not a number; the threshold stays.` });
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
    const { state } = source;
    const { scores, memo } = state;
    const picture = source.picture();
    el.hidden = !picture;
    if (!picture || !scores || !memo) return;
    rule.select.value = state.rule;
    setText(unit, thresholdUnit(scores, state));
    // The slider's stops and the number of passing heads need every task: the first frame has
    // neither.
    if (state.settled) {
      stops = thresholdStops(memo, state);
      track.max = String(stops.length);
      track.value = String(position(stops, state.threshold));
    }
    const text = state.threshold === null ? "" : typed(state.threshold);
    if (focused(value) !== value || value.dataset.shown === value.value) value.value = text;
    value.dataset.shown = value.value;
    track.setAttribute("aria-valuetext", text || "off");
    setText(count, state.settled ? passText(scores, picture.passing) : "");
    count.title = viewOf(state).counted;
    clear.disabled = state.threshold === null;
  };
  draw();
  return source.subscribe((changed) => {
    if (changed.has("settled") || changed.has("picture")) draw();
  });
};

/** What the threshold's number is now. */
function thresholdUnit(scores: Scores, settings: Settings): string {
  const { rule, normalize, sign } = settings;
  const name = viewOf(settings).numberName(scores, settings);
  const strengths = { either: `|${name}|`, helps: name, hurts: `−${name}` };
  return unitOf(rule, scores.signed && normalize === null ? strengths[sign] : name);
}

/** Where the slider can stand now; kept while it is dragged. */
function thresholdStops(memo: Memo, settings: Settings): readonly number[] {
  const { rule } = settings;
  const [low, high] = viewOf(settings).extent(memo, settings);
  return memo.once(() => sliderStops(rule, memo.cells, low, high), "slider", rule, low, high);
}

/** Move the threshold by so many stops of its slider. */
export function nudge(source: Source, by: number): void {
  const { state } = source;
  if (!state.memo) return;
  const stops = thresholdStops(state.memo, state);
  const at = Math.max(0, Math.min(stops.length, position(stops, state.threshold) + by));
  const stop = at === 0 ? null : stops[at - 1]!;
  const now = state.threshold;
  // Beyond the last stop it stays, never moves back.
  const next = stop !== null && now !== null && (stop - now) * by < 0 ? now : stop;
  source.sync({ threshold: next });
  const passed = passText(state.memo.scores, source.picture()?.passing ?? null);
  source.show({ spoken: `Threshold ${next === null ? "off" : typed(next)}, ${passed}` });
}

/** How many heads pass. */
function passText(scores: Scores, passing: Uint8Array | null): string {
  const heads = scores.layers.length * scores.heads;
  const all = `${heads} ${heads === 1 ? "head" : "heads"}`;
  if (!passing) return all;
  let passed = 0;
  for (let i = 0; i < passing.length; i++) passed += passing[i]!;
  return `${passed} of ${all}`;
}
