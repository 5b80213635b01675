// The agreement: how many heads are on in at least k of n runs, with a line to drag.

import { HIGH } from "../display/distribution";
import type { Settings } from "../display/settings";
import { viewOf } from "../display/views";
import { agreementStops, headsOn, stopFor } from "../scores/agreement_curve";
import type { Memo } from "../scores/memo";
import { runsNeeded } from "../scores/reduce";
import type { Asked, Draws, Panel, Reads, Shows, State, Syncs } from "../state";
import { make, setText } from "./dom";
import { shape, trace, track } from "./track";

const WIDE = 100;
const FLAT = `M0 ${HIGH / 2 - 1}H${WIDE}V${HIGH / 2 + 1}H0Z`;

type Source = Reads<Asked | "settled"> & Draws & Syncs<"agreement"> & Shows<"agreeing" | "spoken">;

export const agreement: Panel<Source> = (el, source) => {
  const area = { all: shape("curve-all"), on: shape("curve-on") };
  const hold = (agreeing: boolean): void => source.show({ agreeing });
  const line = track("curve", WIDE, Object.values(area), {
    pick(fraction) {
      const places = stops.map((stop) => placeOf(stops, stop));
      const at = places.findIndex((_, i) => {
        const next = places[i + 1];
        return next === undefined || fraction < (places[i]! + next) / 2;
      });
      source.sync({ agreement: stops[at]! });
    },
    hold,
  });
  const slider = line.input;
  slider.setAttribute("aria-label", "Agreement");
  const name = make("span", "choice-name");
  const text = make("output", "agreed");
  const [any, always] = [make("span", "end", "Any"), make("span", "end", "Always")];
  el.append(
    make("div", "agreement-text", name, text),
    make("div", "agreement-ends", any, line.el, always),
  );
  let stops: number[] = [1];
  slider.addEventListener("input", () => {
    hold(true);
    source.sync({ agreement: stops[slider.valueAsNumber]! });
  });
  for (const end of ["change", "blur"]) slider.addEventListener(end, () => hold(false));

  const draw = (): void => {
    const { state } = source;
    const { scores, memo } = state;
    el.hidden = !scores || !viewOf(state).uses.has("agreement");
    if (!scores || !memo || el.hidden) return;
    stops = agreementStops(scores.tasks);
    const at = stopFor(stops, state.agreement);
    slider.max = String(stops.length - 1);
    slider.value = String(at);
    slider.disabled = stops.length < 2;
    const words = agreementText(state);
    setText(text, words);
    text.title = words; // cut short where there is no room
    setText(name, state.threshold === null ? "Reached" : "On");
    slider.setAttribute("aria-valuetext", words);
    line.stand([placeOf(stops, stops[at]!)]);
    if (state.settled) drawCurve(memo, state, at);
  };
  const drawCurve = (memo: Memo, settings: Settings, at: number): void => {
    const on = curveOf(memo, settings, stops);
    el.title = on
      ? "How many heads are on in at least so many runs, in one of the tasks shown or more " +
        "(heights are square roots): drag the line"
      : "Colours show what a head reaches in at least so many runs; with a threshold this is a " +
        "curve of how many heads are on";
    const most = Math.max(1, on?.[0] ?? 0);
    const points = on?.map(
      (count, i): Point => [placeOf(stops, stops[i]!) * WIDE, Math.sqrt(count / most)],
    );
    trace(area.all, points ? curve(points) : FLAT);
    trace(area.on, points ? curve(points.slice(at)) : "");
  };
  draw();
  return source.subscribe((changed) => {
    if (changed.has("settled") || changed.has("picture")) draw();
  });
};

type Point = readonly [number, number];

/** Where a stop stands between any and always. */
function placeOf(stops: readonly number[], stop: number): number {
  const [first, last] = [stops[0]!, stops[stops.length - 1]!];
  return last > first ? (stop - first) / (last - first) : 1;
}

/** The area under points, as a path. */
function curve(points: readonly Point[]): string {
  const up = (height: number): string => (HIGH - height * (HIGH - 1)).toFixed(1);
  const [first, last] = [points[0]!, points[points.length - 1]!];
  const tops = points.map(([x, height]) => `L${x.toFixed(1)} ${up(height)}`).join("");
  return `M${first[0].toFixed(1)} ${HIGH}${tops}L${last[0].toFixed(1)} ${HIGH}Z`;
}

/** How many heads are on at each stop; null without a threshold. Kept while the line is dragged. */
function curveOf(memo: Memo, settings: Settings, stops: readonly number[]): number[] | null {
  const view = viewOf(settings);
  const shown = view.tasks(memo, settings);
  const reached = shown.map((task) => view.reached(memo, task, settings));
  if (reached.some((counts) => counts === null)) return null;
  const counts = reached.filter((counts) => counts !== null);
  return headsOn(shown, counts, stops);
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

/** Ask for less or more agreement, in the view that has it. */
export function nudgeAgreement(source: Source, by: number): void {
  const { state } = source;
  if (!state.scores || !viewOf(state).uses.has("agreement")) return;
  const stops = agreementStops(state.scores.tasks);
  const at = stopFor(stops, state.agreement);
  source.sync({ agreement: stops[Math.max(0, Math.min(stops.length - 1, at + by))]! });
  source.show({ spoken: agreementText(source.state) });
}
