// The colour bar that all maps share, with a mark where the threshold stands.

import { css, stops } from "../display/palette";
import { barTicks } from "../display/scales";
import { type Panel, PICTURE } from "../store";
import { make, setText } from "./dom";

export const colourbar: Panel = (el, store) => {
  const strip = make("div", "bar-strip");
  const labels = make("div", "bar-labels");
  const below = [make("div", "bar-mark"), make("div", "bar-mark")];
  const floors = [make("div", "bar-floor"), make("div", "bar-floor")];
  const title = make("div", "bar-title");
  el.append(title, make("div", "bar-body", strip, labels));
  for (const line of floors)
    line.title = "Noise floor: what a score reaches by chance alone, in the method’s own control";
  strip.append(...floors, ...below);
  el.setAttribute("role", "img");

  let drawn: readonly unknown[] = []; // what strip and labels were made from: a threshold's drag moves the mark alone
  const draw = (): void => {
    const { scores, scheme, threshold, rule, sign, normalize } = store.state;
    const picture = store.picture();
    if (!scores || !picture || picture.colours === "categories") return;
    const { range, colours } = picture;
    const up = (value: number): number => (value - range.low) / (range.high - range.low);
    const from = [range, colours, scheme, picture.label];
    if (from.some((one, i) => one !== drawn[i])) {
      drawn = from;
      const stopList = stops(colours, scheme).map(css).join(", ");
      strip.style.backgroundImage = `linear-gradient(to top, ${stopList})`;
      const ticks = barTicks(range);
      labels.replaceChildren(
        ...ticks.map(({ value, label }) => {
          const tick = make("span", "tick", label);
          tick.style.bottom = `${up(value) * 100}%`;
          return tick;
        }),
      );
      setText(title, picture.label);
      const ends = `from ${ticks[0]!.label} to ${ticks[ticks.length - 1]!.label}`;
      el.setAttribute("aria-label", `Colours: ${picture.label}, ${ends}`);
    }
    // One mark only where one number is the cut of every task and stands on this scale.
    const marked = threshold !== null && rule === "value" && picture.label !== "fraction of runs";
    const both = scores.signed && normalize === null;
    const marks = !marked
      ? []
      : [
          ...(!both || sign !== "hurts" ? [threshold] : []),
          ...(both && sign !== "helps" ? [-threshold] : []),
        ];
    stand(below, marks);
    stand(
      floors,
      picture.floor === null ? [] : both ? [picture.floor, -picture.floor] : [picture.floor],
    );
    function stand(elements: readonly HTMLElement[], values: readonly number[]): void {
      elements.forEach((mark, i) => {
        const value = values[i];
        mark.hidden = value === undefined || up(value) < 0 || up(value) > 1;
        if (value !== undefined) mark.style.bottom = `${up(value) * 100}%`;
      });
    }
  };
  draw();
  return store.subscribe((changed) => {
    if (changed.has("scheme") || PICTURE.some((name) => changed.has(name))) draw();
  });
};
