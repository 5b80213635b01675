// The first line: what is shown, which view of it, and the menus; below it what a score means.

import { VIEWS } from "../display/views";
import type { Scores } from "../scores/head_scores";
import { nothingMeasured } from "../scores/missing";
import type { Asked, Draws, Keeps, Panel, Reads, Shows, Syncs, Undoes } from "../state";
import { about as aboutScores } from "./about";
import { displayMenu } from "./display_menu";
import { all, button, make, setText } from "./dom";
import { meaning } from "./meaning";
import { saveMenu } from "./save";
import { undo } from "./undo";

/** What the tabs and the three menus need together. */
type Source = Reads<
  Asked | "selected" | "help" | "simple" | "textScale" | "undoable" | "redoable"
> &
  Draws &
  Syncs<"view" | "isolated" | "colormap" | "scale" | "orientation" | "cap"> &
  Shows<"help" | "simple" | "textScale"> &
  Undoes &
  Keeps;

export const header: Panel<Source> = (el, source) => {
  const model = make("span", "model");
  const about = make("span", "about");
  const views = Object.values(VIEWS).map((view) => ({
    name: view.name,
    tab: button("view-tab", view.title, view.about, () =>
      source.sync({ view: view.name, isolated: null }),
    ),
  }));
  const tabs = make("div", "views", ...views.map(({ tab }) => tab));
  tabs.setAttribute("role", "group");
  tabs.setAttribute("aria-label", "View");
  const more = button(
    "icon hw-disclose",
    "More",
    "Show or put away what few need: which tasks, presets, display, about, undo",
    () => source.show({ simple: !source.state.simple }),
  );
  more.setAttribute("aria-label", "More controls");
  const keys = button("icon", "?", "Mouse, keys and a tour (?)", () =>
    source.show({ help: !source.state.help }),
  );
  keys.setAttribute("aria-label", "Help");
  const undoing = make("div", "undo hw-more");
  const [display, save, from] = [
    make("details", "menu hw-more"),
    make("details", "menu hw-save"),
    make("details", "menu hw-more"),
  ];
  const means = make("div", "meaning");
  el.append(
    make("div", "title", model, about),
    make("div", "tools", tabs, undoing, display, from, save, more, keys),
    means,
  );
  const disposes = [
    undo(undoing, source),
    displayMenu(display, source),
    saveMenu(save, source),
    aboutScores(from, source),
    meaning(means, source),
  ];

  const draw = (): void => {
    const { scores, view } = source.state;
    el.hidden = !scores;
    if (!scores) return;
    setText(model, scores.model || "Attention heads");
    setText(about, aboutText(scores));
    model.title = model.textContent;
    about.title = about.textContent;
    for (const { name, tab } of views) tab.setAttribute("aria-pressed", String(name === view));
    more.setAttribute("aria-expanded", String(!source.state.simple));
  };
  draw();
  const stop = source.subscribe((changed) => {
    if (changed.has("scores") || changed.has("view") || changed.has("simple")) draw();
  });
  return all(stop, ...disposes);
};

/** By which method, and how much of it is done. */
function aboutText(scores: Scores): string {
  if (nothingMeasured(scores)) return [scores.method, "not scored yet"].filter(Boolean).join(" · ");
  const missing = scores.tasks.some((task) => task.measured?.includes(0));
  const left = missing ? "not every head measured" : scores.partial ? "stopped early" : "";
  return [scores.method, scores.changed, runsText(scores), left].filter(Boolean).join(" · ");
}

function runsText(scores: Scores): string {
  const runs = scores.tasks.map((task) => task.runs);
  if (!runs.length) return "";
  const [least, most] = [Math.min(...runs), Math.max(...runs)];
  return most === 1 ? "1 run" : `${least === most ? most : `${least} to ${most}`} runs`;
}
