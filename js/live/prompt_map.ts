// The map of a prompt: what each head adds to the logit of the chosen token.

import { rangeOf, SIXES, sortedScores } from "../display/scales";
import type { Picture } from "../display/views/picture";
import type { Change, MapSource, MapState, Reads } from "../state";
import type { Lab } from "./lab";
import { visible } from "./tokens";

const [MAP_WIDTH, MAP_HEIGHT] = [230, 196]; // CSS pixels: beside the lists of the Prompt tab
/** What the map depends on besides the widget's own state. */
const LAB = ["_maps", "_reading", "target"] as const;
const CHANGED: ReadonlySet<Change> = new Set(["picture", "layout"]);

/** The widget's heads, selection and pointer with the picture of the prompt's map. */
export function promptSource(lab: Lab, widget: MapSource & Reads<"orientation">): MapSource {
  let kept: { readonly of: readonly unknown[]; readonly picture: Picture } | null = null;
  return {
    get state(): MapState {
      return { ...widget.state, width: Math.min(widget.state.width, MAP_WIDTH) };
    },
    picture() {
      const { scores, orientation } = widget.state;
      const read = LAB.map((name) => lab.state[name]);
      const of = [...read, orientation, scores?.layers.length, scores?.heads];
      if (kept?.of.every((part, i) => part === of[i])) return kept.picture;
      const values = valuesOf(lab, scores ? scores.layers.length * scores.heads : 0);
      kept = values && { of, picture: pictureOf(values.map, values.token, orientation ?? "y") };
      return kept?.picture ?? null;
    },
    point: (point) => widget.point(point),
    sync: (patch) => widget.sync(patch),
    show: (patch) => widget.show(patch),
    subscribe(listener) {
      const stops = [
        widget.subscribe(listener),
        lab.subscribe((changed) => {
          if (LAB.some((name) => changed.has(name))) listener(CHANGED);
        }),
      ];
      return () => {
        for (const stop of stops) stop();
      };
    },
  };
}

/** The chosen token, and its map; null while there is none of as many heads. */
function valuesOf({ state }: Lab, cells: number): { token: string; map: Float32Array } | null {
  const { _maps: bytes, _reading: read, target } = state;
  const list = read.predictions ?? [];
  if (!bytes || !list.length || !cells || bytes.byteLength !== 4 * cells * list.length) return null;
  const chosen = list.findIndex(([id]) => id === target);
  const at = Math.max(0, chosen); // the likeliest where none is chosen
  const from = bytes.byteOffset + 4 * cells * at;
  const map = new Float32Array(bytes.buffer.slice(from, from + 4 * cells));
  return { token: list[at]![1], map };
}

function pictureOf(values: Float32Array, token: string, layersOn: "y" | "x"): Picture {
  return {
    panels: [
      { title: `adds to ${visible(token)}`, values, passes: null, missing: null, task: null },
    ],
    range: rangeOf(sortedScores([values]), true, null),
    colours: "blue-orange",
    label: "logit",
    layersOn,
    columns: 1,
    passing: null,
    legend: [],
    cuts: [],
    floor: null,
    signed: true,
    slots: null,
    layerTicks: SIXES,
    countWord: "pass",
    tallest: MAP_HEIGHT,
  };
}
