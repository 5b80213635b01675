// A prompt that is typed: its tokens, and what comes next before and after heads were changed.

import { all, button, keepKeys, make, refill, setText } from "../panels/dom";
import { isOut } from "./kernel";
import type { Lab, Prediction } from "./lab";
import { visible } from "./tokens";

const PAUSE = 180; // ms without a key before the model reads
const RISEN = 2; // tokens that are likely only with heads changed, behind the first few
const FIRST = 4; // the likeliest, in front of them

export const prompt =
  (lab: Lab) =>
  (el: HTMLElement): (() => void) => {
    const box = make("textarea", "prompt-text");
    box.rows = 1;
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
    next.setAttribute("role", "group");
    next.setAttribute("aria-label", "Likeliest next tokens");
    const note = make("p", "prompt-note");
    el.append(box, tokens, error, next, note);

    const draw = (): void => {
      const { _reading: read, target, kernel } = lab.state;
      box.disabled = isOut(kernel);
      setText(error, read.error ?? "");
      error.hidden = !read.error;
      tokens.replaceChildren(
        ...(read.tokens ?? []).map((token) => make("span", "token", visible(token))),
      );
      tokens.hidden = !read.tokens?.length;
      const list = read.predictions ?? [];
      const chosen = list.some(([id]) => id === target) ? target : list[0]?.[0];
      const rows = list.map((prediction) => line(prediction, prediction[0] === chosen, lab));
      const risen = (read.risen ?? []).slice(0, RISEN);
      rows.splice(FIRST, 0, ...risen.map((prediction) => line(prediction, false, lab)));
      refill(next, rows);
      next.hidden = !list.length;
      setText(note, list.length ? (read.why_not ?? "") : "");
      note.hidden = !note.textContent;
      el.dataset.read = read.text ?? ""; // tests and benchmarks read which prompt this is of
      if (typing === undefined && box.value !== lab.state.prompt) box.value = lab.state.prompt;
    };
    draw();
    const stop = lab.subscribe((changed) => {
      if (["_reading", "target", "prompt", "kernel"].some((name) => changed.has(name as never)))
        draw();
    });
    return all(() => clearTimeout(typing), stop);
  };

/** A prediction: its token, a bar, and its probability. */
function line([id, text, p, after]: Prediction, chosen: boolean, lab: Lab): HTMLElement {
  const percent = (number: number): string => `${(100 * number).toFixed(1)}%`;
  const values = after === null ? percent(p) : `${percent(p)} → ${percent(after)}`;
  const title =
    after === null
      ? "Map what each head adds to this token, in the Prompt tab"
      : "Before and after heads were changed. Click: map what each head adds to this token";
  const row = button("prediction", "", title, () => lab.set({ target: id }));
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
