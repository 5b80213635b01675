// The colour bar that all maps share, with a mark where the threshold stands.

import { barTicks, type Rgb, stops } from "../scales";
import { numberName, type Panel } from "../store";
import { make } from "./dom";

export const colourbar: Panel = (el, store) => {
  const strip = make("div", "bar-strip");
  const labels = make("div", "bar-labels");
  const below = [make("div", "bar-mark"), make("div", "bar-mark")];
  const body = make("div", "bar-body", strip, labels);
  const title = make("div", "bar-title");
  el.append(title, body);
  strip.append(...below);
  el.setAttribute("role", "img");

  const draw = (): void => {
    const { scores, scheme, threshold, range } = store.state;
    if (!scores) return;
    const up = (value: number): number => (value - range.low) / (range.high - range.low);
    const css = ([r, g, b]: Rgb): string => `rgb(${r} ${g} ${b})`;
    strip.style.backgroundImage = `linear-gradient(to top, ${stops(scores.signed, scheme).map(css).join(", ")})`;
    const ticks = barTicks(range);
    labels.replaceChildren(
      ...ticks.map(({ value, label }) => {
        const tick = make("span", "tick", label);
        tick.style.bottom = `${up(value) * 100}%`;
        return tick;
      }),
    );
    title.textContent = numberName(scores);
    el.setAttribute("aria-label", `Colours from ${ticks[0]!.label} to ${ticks[ticks.length - 1]!.label}`);
    const marks = threshold === null ? [] : scores.signed ? [threshold, -threshold] : [threshold];
    below.forEach((mark, i) => {
      const value = marks[i];
      mark.hidden = value === undefined || up(value) < 0 || up(value) > 1;
      if (value !== undefined) mark.style.bottom = `${up(value) * 100}%`;
    });
  };
  draw();
  return store.subscribe((changed) => {
    if (changed.has("scores") || changed.has("scheme") || changed.has("threshold")) draw();
  });
};
