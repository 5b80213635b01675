// A prompt that is typed: its tokens, what comes next before and after heads were scaled, and the map of what each head adds to a token.

import { layoutOf } from "../display/layout";
import type { Picture } from "../display/picture";
import { rangeOf, sortedScores } from "../display/scales";
import { colourbar } from "../panels/colourbar";
import { all, button, keepKeys, make, refill, setText } from "../panels/dom";
import { heatmap } from "../panels/heatmap";
import type { Change, State, Store } from "../store";
import type { Lab, Prediction } from "./lab";

const PAUSE = 180; // ms without a key before the model reads
const [MAP_WIDTH, MAP_HEIGHT] = [420, 320]; // CSS pixels: as much as the predictions beside it

export const prompt =
  (lab: Lab) =>
  (el: HTMLElement, store: Store): (() => void) => {
    const box = make("textarea", "prompt-text");
    box.rows = 2;
    box.placeholder = "Type a prompt: The capital of France is";
    box.value = lab.state.prompt;
    box.setAttribute("aria-label", "Prompt");
    keepKeys(box);
    let typing: ReturnType<typeof setTimeout> | undefined;
    box.addEventListener("input", () => {
      clearTimeout(typing);
      typing = setTimeout(() => {
        typing = undefined;
        lab.set({ prompt: box.value, target: null });
      }, PAUSE);
    });
    const tokens = make("div", "tokens");
    tokens.setAttribute("aria-label", "Tokens");
    tokens.setAttribute("role", "group");
    const error = make("div", "error");
    error.setAttribute("role", "alert");
    const next = make("div", "next");
    const note = make("p", "prompt-note");
    const [figure, bar] = [make("figure", "map"), make("div", "bar")];
    figure.classList.add("hw-first", "hw-last");
    const map = make("div", "prompt-map", figure, bar);
    el.append(
      make("h3", "live-name", "Prompt"),
      box,
      tokens,
      error,
      make("div", "prompt-body", make("div", "prompt-next", next, note), map),
    );
    const own = promptStore(lab, store, map);
    const disposes = [heatmap(0)(figure, own), colourbar(bar, own)];

    const draw = (): void => {
      const { _reading: read, target } = lab.state;
      setText(error, read.error ?? "");
      error.hidden = !read.error;
      tokens.replaceChildren(
        ...(read.tokens ?? []).map((token) => make("span", "token", shown(token))),
      );
      tokens.hidden = !read.tokens?.length;
      const list = read.predictions ?? [];
      const scaled = list.some(([, , , after]) => after !== null);
      const chosen = list.some(([id]) => id === target) ? target : list[0]?.[0];
      const rows = list.map((one) => line(one, one[0] === chosen, lab));
      const others = (read.risen ?? []).slice(0, 3).map((one) => line(one, false, lab));
      refill(next, [...rows, ...others]);
      setText(
        note,
        !list.length
          ? ""
          : (read.why_not ??
              `Next token${scaled ? ", before and after heads are scaled" : ""}. Click one: the map shows what each head adds to its logit (read in ${read.ms} ms).`),
      );
      map.hidden = !list.length || !!read.why_not;
      el.dataset.read = read.text ?? ""; // tells a test, or a benchmark, which prompt these are the predictions of
      if (typing === undefined && box.value !== lab.state.prompt) box.value = lab.state.prompt;
    };
    draw();
    const stop = lab.subscribe((changed) => {
      if (["_reading", "target", "prompt"].some((name) => changed.has(name as never))) draw();
    });
    return all(() => clearTimeout(typing), stop, ...disposes);
  };

const SEEN: Readonly<Record<string, string>> = { " ": "␣", "\n": "⏎", "\t": "⇥" };

/** A token as people read it: spaces, line ends and what else has no shape of its own are seen. */
export const shown = (token: string): string =>
  token.replace(
    /[\s\p{C}\p{Z}]/gu,
    (one) => SEEN[one] ?? `\\u{${one.codePointAt(0)!.toString(16)}}`,
  ) || "∅";

function line([id, text, p, after]: Prediction, chosen: boolean, lab: Lab): HTMLElement {
  const percent = (number: number): string => `${(100 * number).toFixed(1)}%`;
  const said = after === null ? percent(p) : `${percent(p)} → ${percent(after)}`;
  const row = button("prediction", "", "Show what each head adds to this token", () =>
    lab.set({ target: id }),
  );
  const strip = make("span", "prediction-bar");
  strip.style.setProperty("--hw-before", String(p));
  strip.style.setProperty("--hw-after", String(after ?? p));
  row.append(
    make("span", "prediction-text", shown(text)),
    strip,
    make("span", "prediction-value", said),
  );
  row.setAttribute("aria-pressed", String(chosen));
  return row;
}

/** The store as the prompt's own map sees it: one panel, of what heads add to the chosen token. */
function promptStore(lab: Lab, store: Store, map: HTMLElement): Store {
  let made: { of: unknown[]; picture: Picture } | null = null;
  const picture = (): Picture | null => {
    const { scores, orientation } = store.state;
    const { _maps: bytes, _reading: read, target } = lab.state;
    const list = read.predictions ?? [];
    const cells = scores ? scores.layers.length * scores.heads : 0;
    if (!scores || !bytes || !list.length || bytes.byteLength !== 4 * cells * list.length)
      return null;
    const of = [bytes, target, orientation, scores.layers.length];
    if (made?.of.every((one, i) => one === of[i])) return made.picture;
    const at = Math.max(
      0,
      list.findIndex(([id]) => id === target),
    );
    const from = bytes.byteOffset + 4 * cells * at;
    const values = new Float32Array(bytes.buffer.slice(from, from + 4 * cells));
    const title = `adds to ${shown(list[at]![1])}`;
    made = {
      of,
      picture: {
        panels: [{ title, values, passes: null, task: null }],
        range: rangeOf(sortedScores([values]), true, null),
        colours: "blue-orange",
        label: "logit",
        layersOn: orientation ?? "y",
        columns: 1,
        passing: null,
        legend: [],
        floor: null,
        slots: null,
        tallest: MAP_HEIGHT,
      },
    };
    return made.picture;
  };
  const size = (): void => {
    const now = picture();
    if (!now) return;
    const { cellWidth, cellHeight, across, down, ratio } = layoutOf(seen(), now);
    map.style.setProperty("--hw-plot-width", `${(cellWidth * across) / ratio}px`);
    map.style.setProperty("--hw-plot-height", `${(cellHeight * down) / ratio}px`);
  };
  const seen = (): State => ({
    ...store.state,
    width: Math.min(store.state.width, MAP_WIDTH),
    threshold: null,
  });
  size();
  return {
    ...store,
    began: store.began,
    get state() {
      return seen();
    },
    picture,
    subscribe(listener) {
      const redraw = new Set<Change>(["scores"]);
      const stops = [
        store.subscribe((changed) => {
          size();
          listener(changed);
        }),
        lab.subscribe((changed) => {
          if (!changed.has("_maps") && !changed.has("_reading") && !changed.has("target")) return;
          size();
          listener(redraw);
        }),
      ];
      return () => {
        for (const stop of stops) stop();
      };
    },
  };
}
