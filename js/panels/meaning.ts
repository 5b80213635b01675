// What a score means: the method's own sentence, and behind it how the method works, how to read
// its numbers and where it is from.

import type { Panel, Reads } from "../state";
import { all, make, setText } from "./dom";
import { popup } from "./popup";

export const meaning: Panel<Reads<"scores">> = (el, source) => {
  const sentence = make("span", "meaning-text");
  const menu = make("details", "menu hw-method");
  el.append(sentence, " ", menu);
  const dispose = popup(menu, "", (box) => fill(box, source));
  const label = menu.querySelector("summary")!;
  label.className = "hw-link";
  const draw = (): void => {
    const { scores } = source.state;
    el.hidden = !scores?.meaning && !scores?.explained?.length;
    setText(sentence, scores?.meaning ?? "");
    menu.hidden = !scores?.explained?.length;
    setText(label, `How ${scores?.method ?? ""} works`);
  };
  draw();
  const stop = source.subscribe((changed) => {
    if (changed.has("scores")) draw();
  });
  return all(stop, dispose);
};

/** The method's text, a paragraph each, and its paper. */
function fill(box: HTMLElement, source: Reads<"scores">): () => void {
  const draw = (): void => {
    const { explained = [], paper } = source.state.scores ?? {};
    const paragraphs = explained.map((words) => make("p", "method-text", words));
    const from = paper ? [make("p", "method-text", "From ", link(...paper), ".")] : [];
    box.replaceChildren(...paragraphs, ...from);
  };
  draw();
  return source.subscribe((changed) => {
    if (changed.has("scores")) draw();
  });
}

/** A link to a paper; an address of another kind, which only a file can have, is left as text. */
function link(name: string, address: string): HTMLElement {
  if (!/^https:\/\/[\w.-]+\//.test(address)) return make("span", "paper", name);
  const el = make("a", "link hw-paper", name);
  el.href = address;
  el.target = "_blank";
  el.rel = "noopener noreferrer";
  el.title = address;
  return el;
}
