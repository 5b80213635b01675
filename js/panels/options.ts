// How maps look: colour map, where colours end, and which axis has the layers.

import { parsed, typed } from "../display/scales";
import type { MapName } from "../display/settings";
import type { Panel, Store } from "../store";
import { choice, keepKeys, make } from "./dom";
import { popup } from "./popup";

const COLOURS: readonly (readonly [MapName | "", string])[] = [
  ["", "automatic"],
  ["viridis", "viridis"],
  ["cividis", "cividis"],
  ["magma", "magma"],
  ["turbo", "turbo"],
  ["blue-orange", "blue to orange"],
];
const AXES = [
  ["", "automatic"],
  ["y", "layers down"],
  ["x", "layers across"],
] as const;

export const options: Panel = (el, store) => popup(el, "Display", (box) => fill(box, store));

function fill(box: HTMLElement, store: Store): () => void {
  const colours = choice("Colours", COLOURS, (name) => store.sync({ colormap: name || null }));
  const axes = choice("Axes", AXES, (axis) => store.sync({ orientation: axis || null }));
  const cap = make("input", "text");
  cap.type = "text";
  cap.placeholder = "automatic";
  cap.title = "A score, a percentile such as 99%, or empty for automatic";
  keepKeys(cap);
  const capLabel = make("label", "choice", make("span", "choice-name", "Colours end at"), cap);
  const wrong = make("p", "option-note");
  wrong.setAttribute("role", "status");
  box.append(colours.el, capLabel, wrong, axes.el);
  cap.addEventListener("change", () => {
    const text = cap.value.trim();
    const number = parsed(text);
    const percent = text.endsWith("%");
    const fine =
      text === "" || (number > 0 && Number.isFinite(number) && (!percent || number <= 100));
    wrong.textContent = fine
      ? ""
      : `${text} is neither a number above 0 nor a percentile such as 99%.`;
    if (fine) store.sync({ cap: text === "" ? null : percent ? `${number}%` : number });
  });
  const draw = (): void => {
    const { colormap, orientation, cap: end, view } = store.state;
    colours.select.value = colormap ?? "";
    colours.el.hidden = view === "categories";
    capLabel.hidden = view === "categories";
    axes.select.value = orientation ?? "";
    cap.value = end === null ? "" : typeof end === "number" ? typed(end) : end;
  };
  draw();
  return store.subscribe((changed) => {
    if (
      changed.has("colormap") ||
      changed.has("orientation") ||
      changed.has("cap") ||
      changed.has("view")
    )
      draw();
  });
}
