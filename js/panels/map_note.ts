// Over the cells of a map that is not scored yet: that it is so, and what to do.

import { isUnscored, type Panel as MapPanel } from "../display/views/picture";
import { nothingMeasured } from "../scores/missing";
import type { MapSource } from "../state";
import { make, setText } from "./dom";

/** The note of a map, and what shows or hides it. */
export interface MapNote {
  readonly el: HTMLElement;
  draw(panel: MapPanel, first: boolean): void;
}

export function mapNote(source: MapSource): MapNote {
  const how = make("span", "unscored-how", "Press Run: cells fill as they are scored.");
  const what = make("span", "unscored-what");
  const el = make("div", "unscored", what, how);
  el.hidden = true;
  return {
    el,
    draw(panel, first) {
      const { scores } = source.state;
      const nothing = isUnscored(panel);
      if (el.hidden === nothing) el.hidden = !nothing;
      const live = source.state.live && scores?.partial;
      setText(what, live ? "Not scored yet" : "Not measured");
      const idle = !!(nothing && first && live && nothingMeasured(scores));
      if (how.hidden === idle) how.hidden = !idle;
    },
  };
}
