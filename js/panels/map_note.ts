// Over the cells of a map that is not scored yet: that it is so, and what to do.

import { isUnscored, type Panel as MapPanel } from "../display/views/picture";
import { nothingMeasured } from "../scores/missing";
import type { MapSource } from "../state";
import { make } from "./dom";

/** The note of a map, and what shows or hides it. */
export interface MapNote {
  readonly el: HTMLElement;
  draw(panel: MapPanel, first: boolean): void;
}

export function mapNote(source: MapSource): MapNote {
  const how = make("span", "unscored-how", "Press Run: cells fill as they are scored.");
  const el = make("div", "unscored", make("span", "unscored-what", "Not scored yet"), how);
  el.hidden = true;
  return {
    el,
    draw(panel, first) {
      const { scores } = source.state;
      const nothing = isUnscored(panel);
      if (el.hidden === nothing) el.hidden = !nothing;
      const idle = nothing && first && scores !== null && nothingMeasured(scores);
      if (how.hidden === idle) how.hidden = !idle;
    },
  };
}
