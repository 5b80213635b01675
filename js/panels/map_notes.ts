// Over the cells of a map, where there is little to see: not scored yet, or too small for a scale
// that is shared with other tasks.

import { quietOf } from "../display/titles";
import { isUnscored, type Panel as MapPanel } from "../display/views/picture";
import { nothingMeasured } from "../scores/missing";
import type { MapSource } from "../state";
import { button, make, setText } from "./dom";

/** The notes of a map, and what fills them. */
export interface MapNotes {
  readonly els: readonly HTMLElement[];
  draw(panel: MapPanel, first: boolean): void;
}

export function mapNotes(source: MapSource): MapNotes {
  const what = make("span", "unscored-what", "Not scored yet");
  const how = make("span", "unscored-how", "Press Run: cells fill as they are scored.");
  const unscored = make("div", "unscored", what, how);
  const most = make("span", "quiet-most");
  const quiet = button("quiet", "", "", () => {
    source.sync({ scale: "own" });
    source.show({ spoken: "Each map has its own colours" });
  });
  quiet.append(most, make("span", "quiet-offer", "own colours"));
  quiet.title =
    "Too small to see beside the other tasks. Click to give each map its own scale of colours.";
  unscored.hidden = quiet.hidden = true;
  return {
    els: [unscored, quiet],
    draw(panel, first) {
      const { scores } = source.state;
      const nothing = isUnscored(panel);
      if (unscored.hidden === nothing) unscored.hidden = !nothing;
      const idle = nothing && first && scores !== null && nothingMeasured(scores);
      if (how.hidden === idle) how.hidden = !idle;
      const words = quietOf(panel);
      if (quiet.hidden !== !words) quiet.hidden = !words;
      setText(most, words);
    },
  };
}
