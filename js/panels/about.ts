// Where the scores come from: model, method, dtype, seed, versions, and how well the model did
// each task.

import type { Panel, Reads } from "../state";
import { make } from "./dom";
import { popup } from "./popup";

export const about: Panel<Reads<"scores">> = (el, source) =>
  popup(el, "About", (box) => fill(box, source));

function fill(box: HTMLElement, source: Reads<"scores">): () => void {
  const list = make("dl", "about-list");
  box.append(list);
  const draw = (): void => {
    const { scores } = source.state;
    const tasks = scores?.tasks.map((t) => [
      t.name,
      [`${t.runs} run${t.runs === 1 ? "" : "s"}`, t.note].filter(Boolean).join(", "),
    ]);
    const lines = [...(scores?.about ?? []), ...(tasks ?? [])] as [string, string][];
    list.replaceChildren(
      ...lines.flatMap(([name, text]) => [
        make("dt", "about-name", name),
        make("dd", "about-text", text),
      ]),
    );
  };
  draw();
  return source.subscribe((changed) => {
    if (changed.has("scores")) draw();
  });
}
