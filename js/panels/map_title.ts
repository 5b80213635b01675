// Above a map: the name of its task, which opens it alone, what is counted in it, and the offer of
// a scale of its own where it can hardly be seen beside the others.

import { countOf, endOf, namesOf, quietOf } from "../display/titles";
import type { Panel as MapPanel, Picture } from "../display/views/picture";
import type { MapSource } from "../state";
import { button, make, setText } from "./dom";

/** A title, and what fills it from a picture. */
export interface MapTitle {
  readonly el: HTMLElement;
  /** The name, and where the colours of the map end. */
  draw(picture: Picture, panel: MapPanel): void;
  /** What changes with a threshold: how many heads pass. */
  count(picture: Picture, panel: MapPanel): void;
}

export function mapTitle(source: MapSource): MapTitle {
  const text = make("span", "map-task");
  const open = button("map-open", "", "", () => {
    const { task } = open.dataset;
    if (task === undefined) return;
    source.sync({ task });
    source.show({ spoken: `${task} alone` });
  });
  const name = make("span", "map-name", text);
  const [which, ofRuns] = [make("span", "map-which"), make("span", "map-of")];
  const part = make("span", "map-part", which, ofRuns);
  const [number, word] = [make("span", "map-number"), make("span", "map-word")];
  const count = make("span", "map-count", number, word);
  const end = make("span", "map-end");
  end.title = "Where this map’s own colours end";
  const most = make("span", "quiet-most");
  const quiet = button("quiet", "", "", () => {
    source.sync({ scale: "own" });
    source.show({ spoken: "Each map has its own colours" });
  });
  quiet.append(make("span", "quiet-word", "quiet"), most, make("span", "quiet-offer", "own scale"));
  const meta = make("span", "map-meta", part, count, end, quiet);
  const el = make("figcaption", "map-title", name, meta);

  let drawn: readonly unknown[] = []; // what the title was last filled from: a drag leaves it
  return {
    el,
    draw(picture, panel) {
      const now = [source.state.scores, panel.title, panel.range, panel.quiet, picture.opens];
      if (drawn.length && now.every((part, i) => part === drawn[i])) return;
      drawn = now;
      const task = source.state.scores?.tasks.find((one) => one.name === panel.task);
      const [called, map] = namesOf(panel);
      setText(text, `${task?.warning ? "⚠ " : ""}${called}`);
      part.hidden = !map;
      const [least, runs] = map.split(" of "); // "≥ 8 of 10"
      setText(which, least!);
      setText(ofRuns, runs ? ` of ${runs}` : "");
      const opens = (picture.opens ?? false) && panel.task !== null;
      if (opens !== (text.parentNode === open)) {
        name.replaceChildren(opens ? open : text);
        if (opens) open.append(text);
      }
      open.dataset.task = panel.task ?? "";
      open.ariaLabel = open.title = `${panel.task}: show it alone`;
      el.title = [panel.title, task?.note, task?.warning].filter(Boolean).join(" — ");
      setText(end, endOf(panel));
      const largest = quietOf(panel);
      quiet.hidden = !largest;
      setText(most, largest);
      quiet.title =
        `Quiet: at most ${largest}, too small to see beside the other tasks. ` +
        "Click to give each map its own scale of colours.";
      quiet.ariaLabel = `${panel.task} is quiet, at most ${largest}: a scale for each map`;
    },
    count(picture, panel) {
      const [many, of] = countOf(picture, panel);
      setText(number, many);
      setText(word, of && ` ${of}`);
    },
  };
}
