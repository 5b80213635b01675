// Where the scores come from: model, method, dtype, seed, versions, and how well the model did each task.

import type { Panel } from "../store";
import { make } from "./dom";
import { closing } from "./menu";

export const about: Panel = (el, store) => {
  const list = make("dl", "about-list");
  el.append(make("summary", "icon", "About"), make("div", "popup", list));
  const draw = (): void => {
    const { scores } = store.state;
    const tasks = scores?.tasks.map((t) => [
      t.name,
      [`${t.runs} run${t.runs === 1 ? "" : "s"}`, t.note].filter(Boolean).join(", "),
    ]);
    const lines = [...(scores?.about ?? []), ...(tasks ?? [])] as [string, string][];
    list.replaceChildren(
      ...lines.flatMap(([name, text]) => [make("dt", "about-name", name), make("dd", "about-text", text)]),
    );
  };
  draw();
  const stop = store.subscribe((changed) => {
    if (changed.has("scores")) draw();
  });
  const release = closing(el);
  return () => {
    stop();
    release();
  };
};
