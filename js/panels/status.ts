// Below the maps: the selected heads, and what went wrong.

import { headName, type Panel } from "../store";
import { make } from "./dom";

const NAMED = 12; // heads named one by one

export const status: Panel = (el, store) => {
  const text = make("span", "selected");
  const clear = make("button", "off", "Clear");
  clear.type = "button";
  clear.title = "Select nothing (Escape)";
  const error = make("div", "error");
  error.setAttribute("role", "alert");
  el.append(error, make("div", "selection", text, clear));
  clear.addEventListener("click", () => store.sync({ selected: [] }));

  const draw = (): void => {
    const { selected, error: wrong, scores } = store.state;
    error.textContent = wrong ?? "";
    error.hidden = !wrong;
    const names = selected.slice(0, NAMED).map(headName).join(", ");
    const more = selected.length > NAMED ? ` and ${selected.length - NAMED} more` : "";
    text.textContent = selected.length
      ? `${selected.length} selected: ${names}${more}`
      : "Click a head to select it; shift-click adds, Escape clears.";
    clear.hidden = !selected.length;
    (el.lastChild as HTMLElement).hidden = !scores;
  };
  draw();
  return store.subscribe((changed) => {
    if (changed.has("selected") || changed.has("error") || changed.has("scores")) draw();
  });
};
