// The second line: the threshold, and what decides whether a head passes it: sign, number and
// agreement.

import { DEFAULTS } from "../display/settings";
import { viewOf } from "../display/views";
import { runsNeeded } from "../scores/reduce";
import type { Sign } from "../scores/threshold";
import type { Asked, Draws, Panel, Reads, Shows, State, Syncs } from "../state";
import { all, choice, keepKeys, make, setText } from "./dom";
import { threshold } from "./threshold";

const SIGNS: readonly (readonly [Sign, string])[] = [
  ["either", "helps or hurts"],
  ["helps", "helps (+)"],
  ["hurts", "hurts (−)"],
];
const NUMBERS = [
  ["mean", "mean"],
  ["median", "median"],
  ["mean share", "share of mean"],
  ["median share", "share of median"],
] as const;

type Source = Reads<Asked | "settled"> &
  Draws &
  Syncs<"threshold" | "rule" | "sign" | "reduction" | "normalize" | "agreement"> &
  Shows<"spoken" | "agreeing">;

export const controls: Panel<Source> = (el, source) => {
  const cut = make("div", "cut");
  const sign = choice("Counts", SIGNS, (value) => source.sync({ sign: value }));
  const number = choice("Number", NUMBERS, (value) => {
    const [reduction, share] = value.split(" ") as ["mean" | "median", string?];
    const normalize = share ? ("share" as const) : null;
    const { normalize: before, rule } = source.state;
    const otherScale = normalize !== before && rule === "value";
    source.sync({ reduction, normalize, ...(otherScale ? { threshold: null } : {}) });
  });
  for (const { el } of [sign, number]) el.classList.add("hw-more"); // simple views hide them
  const slider = make("input", "slider");
  slider.type = "range";
  slider.min = "0";
  keepKeys(slider);
  const text = make("output", "agreed");
  const ends = make(
    "span",
    "agreement-ends",
    make("span", "end", "Any"),
    slider,
    make("span", "end", "Always"),
  );
  const agreement = make(
    "label",
    "agreement",
    make("span", "choice-name", "Agreement"),
    ends,
    text,
  );
  el.append(cut, sign.el, number.el, agreement);
  let stops: number[] = [];
  slider.addEventListener("input", () => {
    source.show({ agreeing: true });
    source.sync({ agreement: stops[slider.valueAsNumber]! });
  });
  for (const end of ["change", "pointerup", "pointercancel", "blur"]) {
    slider.addEventListener(end, () => source.show({ agreeing: false }));
  }

  const draw = (): void => {
    const { state } = source;
    const { scores } = state;
    const view = viewOf(state);
    el.hidden = !scores;
    if (!scores) return;
    sign.el.hidden = !scores.signed;
    sign.select.value = state.sign;
    sign.el.classList.toggle("hw-changed", state.sign !== DEFAULTS.sign);
    const { reduction, normalize } = DEFAULTS;
    const usual = state.reduction === reduction && state.normalize === normalize;
    number.el.classList.toggle("hw-changed", !usual);
    number.el.hidden = !view.showsNumber;
    number.select.value = `${state.reduction}${state.normalize ? " share" : ""}`;
    agreement.hidden = !view.uses.has("agreement");
    stops = agreementStops(state);
    slider.max = String(stops.length - 1);
    const nearest = stops.findIndex((stop) => stop >= state.agreement - 1e-9);
    slider.value = String(nearest < 0 ? stops.length - 1 : nearest);
    slider.disabled = stops.length < 2;
    setText(text, agreementText(state));
    slider.setAttribute("aria-valuetext", agreementText(state));
  };
  draw();
  const stop = source.subscribe((changed) => {
    if (changed.has("picture")) draw();
  });
  return all(stop, threshold(cut, source));
};

/**
 * Agreements the slider can have, from any to always: those whose order statistic was sent, for
 * the task with most runs.
 */
export function agreementStops({ scores }: Pick<State, "scores">): number[] {
  const tasks = [...(scores?.tasks ?? [])].sort((a, b) => b.runs - a.runs);
  const most = tasks[0];
  if (!most) return [1];
  return most.ranks.map((rank) => (most.runs - rank) / most.runs).reverse();
}

/** The agreement in words. */
export function agreementText({ scores, agreement }: Pick<State, "scores" | "agreement">): string {
  const runs = [...new Set(scores!.tasks.map((task) => task.runs))];
  if (runs.length === 1) {
    const [needed, all] = [runsNeeded(agreement, runs[0]!), runs[0]!];
    if (all === 1) return "in the only run";
    if (needed === all) return `in all ${all} runs`;
    return needed === 1 ? `in 1 of ${all} runs or more` : `in at least ${needed} of ${all} runs`;
  }
  if (agreement === 1) return "in all runs";
  return agreement === 0
    ? "in 1 run or more"
    : `in at least ${Math.round(agreement * 1000) / 10}% of runs`;
}
