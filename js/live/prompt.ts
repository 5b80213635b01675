// A prompt that is typed: its tokens, what comes next before and after heads were scaled, and the
// map of what each head adds to a token.

import { layoutOf } from "../display/layout";
import { colourbar } from "../panels/colourbar";
import { all, button, keepKeys, make, refill, setText } from "../panels/dom";
import { heatmap } from "../panels/heatmap";
import type { MapSource, Panel, Reads } from "../state";
import type { Lab, Prediction } from "./lab";
import { promptSource } from "./prompt_map";
import { visible } from "./tokens";

const PAUSE = 180; // ms without a key before the model reads

export const prompt =
  (lab: Lab): Panel<MapSource & Reads<"orientation">> =>
  (el, widget) => {
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
    const source = promptSource(lab, widget);
    const size = (): void => {
      const picture = source.picture();
      if (!picture) return;
      const { cellWidth, cellHeight, across, down, ratio } = layoutOf(source.state, picture);
      map.style.setProperty("--hw-plot-width", `${(cellWidth * across) / ratio}px`);
      map.style.setProperty("--hw-plot-height", `${(cellHeight * down) / ratio}px`);
    };
    size();
    const disposes = [
      source.subscribe((changed) => {
        if (changed.has("layout")) size();
      }),
      heatmap(0)(figure, source),
      colourbar(bar, source),
    ];

    const draw = (): void => {
      const { _reading: read, target } = lab.state;
      setText(error, read.error ?? "");
      error.hidden = !read.error;
      tokens.replaceChildren(
        ...(read.tokens ?? []).map((token) => make("span", "token", visible(token))),
      );
      tokens.hidden = !read.tokens?.length;
      const list = read.predictions ?? [];
      const scaled = list.some(([, , , after]) => after !== null);
      const chosen = list.some(([id]) => id === target) ? target : list[0]?.[0];
      const rows = list.map((prediction) => line(prediction, prediction[0] === chosen, lab));
      const risen = (read.risen ?? []).slice(0, 3);
      refill(next, [...rows, ...risen.map((prediction) => line(prediction, false, lab))]);
      setText(
        note,
        !list.length
          ? ""
          : (read.why_not ??
              `Next token${scaled ? ", before and after heads are scaled" : ""}. Click one: ` +
                `the map shows what each head adds to its logit (read in ${read.ms} ms).`),
      );
      map.hidden = !list.length || !!read.why_not;
      el.dataset.read = read.text ?? ""; // tests and benchmarks read which prompt this is of
      if (typing === undefined && box.value !== lab.state.prompt) box.value = lab.state.prompt;
    };
    draw();
    const stop = lab.subscribe((changed) => {
      if (["_reading", "target", "prompt"].some((name) => changed.has(name as never))) draw();
    });
    return all(() => clearTimeout(typing), stop, ...disposes);
  };

/** A prediction: its token, a bar, and its probability. */
function line([id, text, p, after]: Prediction, chosen: boolean, lab: Lab): HTMLElement {
  const percent = (number: number): string => `${(100 * number).toFixed(1)}%`;
  const values = after === null ? percent(p) : `${percent(p)} → ${percent(after)}`;
  const row = button("prediction", "", "Show what each head adds to this token", () =>
    lab.set({ target: id }),
  );
  const strip = make("span", "prediction-bar");
  strip.style.setProperty("--hw-before", String(p));
  strip.style.setProperty("--hw-after", String(after ?? p));
  row.append(
    make("span", "prediction-text", visible(text)),
    strip,
    make("span", "prediction-value", values),
  );
  row.setAttribute("aria-pressed", String(chosen));
  return row;
}
