// The Display menu: colour map, where colours end, which axis has the layers, the size of text, and
// back to how it all was at first.

import { parsed, typed } from "../display/scales";
import type { MapName } from "../display/settings";
import { viewOf } from "../display/views";
import type { Panel, Reads, Shows, Syncs, Undoes } from "../state";
import { button, choice, keepKeys, make } from "./dom";
import { popup } from "./popup";

const COLOURS: readonly (readonly [MapName | "", string])[] = [
  ["", "automatic"],
  ["viridis", "viridis"],
  ["cividis", "cividis"],
  ["magma", "magma"],
  ["turbo", "turbo"],
  ["blue-orange", "blue to orange"],
];
const SCALES = [
  ["shared", "one for all maps"],
  ["own", "each map its own"],
] as const;
const AXES = [
  ["", "automatic"],
  ["y", "layers down"],
  ["x", "layers across"],
] as const;
/** What type is multiplied by. */
const SIZES = [
  ["1", "normal"],
  ["1.25", "large"],
  ["1.6", "projector"],
] as const;

type Source = Reads<"colormap" | "scale" | "orientation" | "cap" | "view" | "textScale"> &
  Syncs<"colormap" | "scale" | "orientation" | "cap"> &
  Shows<"textScale"> &
  Undoes;

export const displayMenu: Panel<Source> = (el, source) =>
  popup(el, "Display", (box) => fill(box, source));

function fill(box: HTMLElement, source: Source): () => void {
  const colours = choice("Colours", COLOURS, (name) => source.sync({ colormap: name || null }));
  const scale = choice("Scale", SCALES, (kind) => source.sync({ scale: kind }));
  const axes = choice("Axes", AXES, (axis) => source.sync({ orientation: axis || null }));
  const sizes = choice("Text size", SIZES, (size) => source.show({ textScale: Number(size) }));
  sizes.el.hidden = !CSS.supports("zoom", "2"); // some older browsers
  const reset = button(
    "menu-item",
    "Reset",
    "Settings and selection as they were at first; can be undone",
    () => source.reset(),
  );
  const cap = make("input", "text");
  cap.type = "text";
  cap.placeholder = "automatic";
  cap.title = "A score, a percentile such as 99%, or empty for automatic";
  keepKeys(cap);
  const capLabel = make("label", "choice", make("span", "choice-name", "Colours end at"), cap);
  const wrong = make("p", "option-note");
  wrong.setAttribute("role", "status");
  box.append(colours.el, scale.el, capLabel, wrong, axes.el, sizes.el, reset);
  cap.addEventListener("change", () => {
    const text = cap.value.trim();
    const number = parsed(text);
    const percent = text.endsWith("%");
    const fine =
      text === "" || (number > 0 && Number.isFinite(number) && (!percent || number <= 100));
    wrong.textContent = fine
      ? ""
      : `${text} is neither a number above 0 nor a percentile such as 99%.`;
    if (fine) source.sync({ cap: text === "" ? null : percent ? `${number}%` : number });
  });
  const draw = (): void => {
    const { colormap, scale: kind, orientation, cap: end, textScale } = source.state;
    const { uses } = viewOf(source.state);
    colours.select.value = colormap ?? "";
    colours.el.hidden = !uses.has("colormap");
    scale.select.value = kind;
    scale.el.hidden = !uses.has("scale");
    capLabel.hidden = !uses.has("cap");
    axes.select.value = orientation ?? "";
    sizes.select.value = String(textScale);
    cap.value = end === null ? "" : typeof end === "number" ? typed(end) : end;
  };
  draw();
  return source.subscribe((changed) => {
    if (
      changed.has("colormap") ||
      changed.has("scale") ||
      changed.has("orientation") ||
      changed.has("cap") ||
      changed.has("textScale") ||
      changed.has("view")
    )
      draw();
  });
}
