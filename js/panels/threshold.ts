// The threshold: its rule, the distribution of the scores with a line to drag, the number as it is
// typed, and how many heads pass.

import {
  axisOf,
  BINS,
  binned,
  cutsOf,
  middleCut,
  outline,
  passingBins,
  placeOn,
  sidesOf,
  stopsOf,
  thresholdAt,
  total,
} from "../display/distribution";
import { parsed, position, typed, unitOf } from "../display/scales";
import type { Settings } from "../display/settings";
import { viewOf } from "../display/views";
import type { Scores } from "../scores/head_scores";
import type { Memo } from "../scores/memo";
import { nothingMeasured } from "../scores/missing";
import type { Rule } from "../scores/threshold";
import type { Asked, Draws, Panel, Reads, Shows, Syncs } from "../state";
import { button, choice, focused, keepKeys, make, setText } from "./dom";
import type { Kept } from "./kept";
import { shape, trace, track } from "./track";

const RULES: readonly (readonly [Rule, string])[] = [
  ["value", "value"],
  ["top", "top k"],
  ["percent", "top %"],
  ["elbow", "elbow"],
];

type Source = Reads<Asked | "settled"> & Draws & Syncs<"threshold" | "rule"> & Shows<"spoken">;

/** The threshold's panel; `kept` has the number of every rule. */
export const threshold =
  (kept: Kept): Panel<Source> =>
  (el, source) => {
    const bars = {
      all: shape("bars-all"),
      below: shape("bars-below"),
      above: shape("bars-above"),
      cuts: shape("bars-cuts"),
    };
    const line = track("distribution", BINS, Object.values(bars), {
      pick(fraction) {
        const { state } = source;
        if (!state.memo || !state.settled) return;
        const { low, high } = axisOf(state.memo, state);
        const value = low + fraction * (high - low);
        source.sync({ threshold: thresholdAt(state.memo, state, value) });
      },
    });
    const slider = line.input;
    const ends = [make("span", "track-low"), make("span", "track-high")];
    for (const end of ends) end.setAttribute("aria-hidden", "true");
    line.el.append(...ends);
    const value = make("input", "value");
    value.type = "text";
    value.inputMode = "decimal";
    value.placeholder = "off";
    value.autocomplete = "off";
    value.setAttribute("aria-label", "Threshold as a number");
    const count = make("output", "count");
    const clear = button("off", "×", "No threshold", () => {
      slider.focus(); // the button goes, and the focus with it
      source.sync({ threshold: null });
    });
    clear.setAttribute("aria-label", "Clear");
    const unit = make("span", "unit");
    const asked = () => ({ ...source.state, method: source.state.scores?.method });
    const rule = choice("Threshold", RULES, (name) => {
      kept.note(asked()); // what came after the last frame, too
      source.sync({ rule: name, threshold: kept.of({ ...asked(), rule: name }) });
    });
    el.append(
      rule.el,
      make("div", "threshold", unit, line.el),
      make("div", "typed", count, make("div", "typed-field", value, clear)),
    );
    let stops: readonly number[] = [];

    slider.addEventListener("input", () => {
      // A place among the stops: a range input's own steps pick up rounding errors.
      const at = slider.valueAsNumber;
      source.sync({ threshold: at === 0 ? null : stops[at - 1]! });
    });
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
      kept.note(asked());
      rule.select.value = state.rule;
      const words = thresholdUnit(scores, state);
      setText(unit, words);
      unit.title = words; // cut short where there is no room
      slider.setAttribute("aria-label", `Threshold, ${words}`);
      const text = state.threshold === null ? "" : typed(state.threshold);
      if (focused(value) !== value || value.dataset.shown === value.value) value.value = text;
      value.dataset.shown = value.value;
      clear.disabled = state.threshold === null;
      const passed = state.settled ? passText(scores, picture.passing) : "";
      setText(count, passed);
      count.title = viewOf(state).counted;
      slider.setAttribute("aria-valuetext", [text || "off", passed].filter(Boolean).join(", "));
      // Stops and bars need every task: the first frame has neither.
      if (!state.settled) return;
      stops = stopsOf(memo, state, state.rule);
      slider.max = String(stops.length);
      slider.value = String(position(stops, state.threshold));
      drawBars(memo, state);
    };

    /** Bars are kept while the threshold is dragged; only the line and the colours move. */
    const drawBars = (memo: Memo, settings: Settings): void => {
      const { signed } = memo.scores;
      const axis = axisOf(memo, settings);
      const view = viewOf(settings);
      const shown = view.tasks(memo, settings);
      const { reduction, normalize, tasks, task } = settings;
      const every = memo.latest(line, [view, reduction, normalize, tasks, task], () => {
        const each = shown.map((task) =>
          memo.once(
            () => binned(view.compared(memo, task, settings), axis),
            ...["bars", view.name, task.name, reduction, normalize],
          ),
        );
        const sum = total(each);
        const most = Math.max(...sum);
        return { each, most, path: outline(sum, most) };
      });
      const sides = sidesOf(signed, settings.sign);
      const cuts = cutsOf(memo, shown, settings);
      const passing = passingBins(every.each, cuts, axis, sides);
      const zero = Math.max(0, Math.min(BINS, Math.round(placeOn(axis, 0) * BINS)));
      trace(bars.all, every.path);
      trace(bars.below, signed ? outline(passing, every.most, 0, zero) : "");
      trace(bars.above, outline(passing, every.most, signed ? zero : 0));

      const places = (cut: number): number[] => [
        ...(sides.above ? [placeOn(axis, cut)] : []),
        ...(sides.below ? [placeOn(axis, -cut)] : []),
      ];
      const { threshold } = settings;
      const byValue = settings.rule === "value";
      const cut = threshold === null ? null : byValue ? threshold : middleCut(cuts);
      if (cut === null) line.stand([placeOn(axis, 0)], true);
      else line.stand(places(cut));
      // Rules that cut every task elsewhere: a thin line each, the thick one on the middle task.
      const thin = byValue ? [] : [...new Set(cuts)].filter((cut) => cut !== null);
      const strokes = thin.length > 1 ? thin.flatMap(places) : [];
      trace(bars.cuts, strokes.map((at) => `M${(at * BINS).toFixed(2)} 0V36`).join(""));

      const none = nothingMeasured(memo.scores); // then the axis has no ends yet
      setText(ends[0]!, none || axis.low >= 0 ? "" : short(axis.low));
      setText(ends[1]!, none ? "" : short(axis.high));
      line.el.classList.toggle("hw-signed", signed);
    };

    draw();
    return source.subscribe((changed) => {
      if (changed.has("settled") || changed.has("picture")) draw();
    });
  };

/** An end of the axis, in two digits. */
const short = (value: number): string => typed(Number(value.toPrecision(2))).replace("-", "−");

/** What the threshold's number is now. */
function thresholdUnit(scores: Scores, settings: Settings): string {
  const { rule, normalize, sign } = settings;
  const name = viewOf(settings).numberName(scores, settings);
  const strengths = { either: `|${name}|`, helps: name, hurts: `−${name}` };
  return unitOf(rule, scores.signed && normalize === null ? strengths[sign] : name);
}

/** Move the threshold by so many stops of its slider. */
export function nudge(source: Source, by: number): void {
  const { state } = source;
  if (!state.memo) return;
  const stops = stopsOf(state.memo, state, state.rule);
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
