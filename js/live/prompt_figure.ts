// The map of what each head adds to a token, with its colour bar.

import { layoutOf } from "../display/layout";
import { colourbar } from "../panels/colourbar";
import { all, make } from "../panels/dom";
import { heatmap } from "../panels/heatmap";
import type { MapSource, Reads } from "../state";
import type { Lab } from "./lab";
import { promptSource } from "./prompt_map";

export function promptFigure(
  lab: Lab,
  widget: MapSource & Reads<"orientation">,
  el: HTMLElement,
): () => void {
  const source = promptSource(lab, widget);
  const [figure, bar] = [make("figure", "map"), make("div", "bar")];
  figure.classList.add("hw-first", "hw-last");
  el.append(figure, bar);
  const size = (): void => {
    const picture = source.picture();
    el.hidden = !picture;
    if (!picture) return;
    const { cellWidth, cellHeight, across, down, ratio } = layoutOf(source.state, picture);
    el.style.setProperty("--hw-plot-width", `${(cellWidth * across) / ratio}px`);
    el.style.setProperty("--hw-plot-height", `${(cellHeight * down) / ratio}px`);
  };
  size();
  const stop = source.subscribe((changed) => {
    if (changed.has("layout")) size();
  });
  return all(stop, heatmap(0)(figure, source), colourbar(bar, source));
}
