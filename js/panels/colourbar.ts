// The colour bar that all maps share, with a mark where the threshold stands.

import { css, stops } from "../display/palette";
import { isOwn, scaleOf, ticksOf } from "../display/views/picture";
import type { Draws, Panel, Reads } from "../state";
import { make, setText } from "./dom";

export const colourbar: Panel<Reads<"scheme"> & Draws> = (el, source) => {
  const strip = make("div", "bar-strip");
  const labels = make("div", "bar-labels");
  const cuts = [make("div", "bar-mark"), make("div", "bar-mark")];
  const floors = [make("div", "bar-floor"), make("div", "bar-floor")];
  const title = make("div", "bar-title");
  el.append(title, make("div", "bar-body", strip, labels));
  for (const line of floors)
    line.title = "Noise floor: what a score reaches by chance alone, in the method’s own control";
  strip.append(...floors, ...cuts);
  el.setAttribute("role", "img");

  // What strip and labels were made from: a threshold's drag moves the mark alone.
  let drawn: readonly unknown[] = [];
  const draw = (): void => {
    const { scheme } = source.state;
    const picture = source.picture();
    const scale = picture && scaleOf(picture);
    if (!picture || !scale) return;
    const { range, floor } = picture;
    const up = (value: number): number => (value - range.low) / (range.high - range.low);
    const own = isOwn(picture);
    const from = [range, scale, scheme, picture.label, own];
    if (from.some((part, i) => part !== drawn[i])) {
      drawn = from;
      const stopList = stops(scale, scheme).map(css).join(", ");
      // The direction is the style sheet's: the bar lies down where the room is narrow.
      strip.style.setProperty("--hw-colours", stopList);
      const ticks = ticksOf(picture);
      labels.replaceChildren(
        ...ticks.map(({ value, label }) => {
          const tick = make("span", "tick", label);
          place(tick, value);
          return tick;
        }),
      );
      setText(title, picture.label);
      el.title = own ? "Each map has its own scale: above it stands where its colours end" : "";
      const ends = own
        ? "each map on its own scale"
        : `from ${ticks[0]!.label} to ${ticks[ticks.length - 1]!.label}`;
      el.setAttribute("aria-label", `Colours: ${picture.label}, ${ends}`);
    }
    stand(cuts, picture.cuts);
    stand(floors, floor === null ? [] : picture.signed ? [floor, -floor] : [floor]);
    function stand(elements: readonly HTMLElement[], values: readonly number[]): void {
      elements.forEach((mark, i) => {
        const value = values[i];
        mark.hidden = value === undefined || up(value) < 0 || up(value) > 1;
        if (value !== undefined) place(mark, value);
      });
    }
    function place(mark: HTMLElement, value: number): void {
      mark.style.setProperty("--hw-at", `${up(value) * 100}%`);
    }
  };
  draw();
  return source.subscribe((changed) => {
    if (changed.has("scheme") || changed.has("picture")) draw();
  });
};
