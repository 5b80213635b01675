// The line of controls: the threshold, and what decides whether a head passes it: sign, number and
// agreement. Its height is the same whatever they are, so that the maps below stay where they are.

import { DEFAULTS } from "../display/settings";
import { viewOf } from "../display/views";
import type { Sign } from "../scores/threshold";
import type { Asked, Draws, Panel, Reads, Shows, Syncs } from "../state";
import { agreement } from "./agreement";
import { all, choice, make } from "./dom";
import { Kept } from "./kept";
import { presets } from "./presets";
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
  const kept = new Kept();
  const cut = make("div", "cut");
  const menu = make("details", "menu hw-more");
  const sign = choice("Sign", SIGNS, (value) => source.sync({ sign: value }));
  const number = choice("Number", NUMBERS, (value) => {
    const [reduction, share] = value.split(" ") as ["mean" | "median", string?];
    const normalize = share ? ("share" as const) : null;
    const { normalize: before, rule } = source.state;
    const otherScale = normalize !== before && rule === "value";
    const threshold = otherScale
      ? { threshold: kept.of({ rule, normalize, method: source.state.scores?.method }) }
      : {};
    source.sync({ reduction, normalize, ...threshold });
  });
  for (const { el } of [sign, number]) el.classList.add("hw-more"); // simple views hide them
  const runs = make("div", "agreement");
  // What a view has is at the end, in one place: nothing before it moves with the view.
  const last = make("div", "by-view", number.el, runs);
  el.append(cut, menu, sign.el, last);

  const draw = (): void => {
    const { state } = source;
    el.hidden = !state.scores;
    sign.el.hidden = !state.scores?.signed;
    sign.select.value = state.sign;
    sign.el.classList.toggle("hw-unusual", state.sign !== DEFAULTS.sign);
    const { reduction, normalize } = DEFAULTS;
    const usual = state.reduction === reduction && state.normalize === normalize;
    number.el.classList.toggle("hw-unusual", !usual);
    number.el.hidden = !viewOf(state).showsNumber;
    number.select.value = `${state.reduction}${state.normalize ? " share" : ""}`;
  };
  draw();
  const stop = source.subscribe((changed) => {
    if (changed.has("picture")) draw();
  });
  return all(stop, threshold(kept)(cut, source), presets(menu, source), agreement(runs, source));
};
