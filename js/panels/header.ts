// The first line: what is shown, which view of it, and the menus.

import { VIEWS } from "../display/views";
import type { Scores } from "../scores/head_scores";
import { nothingMeasured } from "../scores/missing";
import type { Asked, Draws, Panel, Reads, Shows, Syncs } from "../state";
import { about as aboutScores } from "./about";
import { displayMenu } from "./display_menu";
import { all, button, make, setText } from "./dom";
import { saveMenu } from "./save";

/** What the tabs and the three menus need together. */
type Source = Reads<Asked | "selected" | "help"> &
  Draws &
  Syncs<"view" | "isolated" | "colormap" | "scale" | "orientation" | "cap"> &
  Shows<"help">;

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
  const keys = button("icon", "?", "List the keys (?)", () =>
    source.show({ help: !source.state.help }),
  );
  keys.setAttribute("aria-label", "Keys");
  const [display, save, from] = [
    make("details", "menu"),
    make("details", "menu"),
    make("details", "menu"),
  ];
  el.append(
    make("div", "what", model, about),
    make("div", "tools", tabs, display, save, from, keys),
  );
  const disposes = [
    displayMenu(display, source),
    saveMenu(save, source),
    aboutScores(from, source),
  ];

  const draw = (): void => {
    const { scores, view } = source.state;
    el.hidden = !scores;
    if (!scores) return;
    setText(model, scores.model || "Attention heads");
    setText(
      about,
      [
        scores.method,
        ...(nothingMeasured(scores)
          ? ["not scored yet"]
          : [
              runsText(scores),
              scores.tasks.some((task) => task.measured?.includes(0))
                ? "not every head measured"
                : scores.partial
                  ? "stopped early"
                  : "",
            ]),
      ]
        .filter(Boolean)
        .join(" · "),
    );
    for (const { name, tab } of views) tab.setAttribute("aria-pressed", String(name === view));
  };
  draw();
  const stop = source.subscribe((changed) => {
    if (changed.has("scores") || changed.has("view")) draw();
  });
  return all(stop, ...disposes);
};

function runsText(scores: Scores): string {
  const runs = scores.tasks.map((task) => task.runs);
  if (!runs.length) return "";
  const [least, most] = [Math.min(...runs), Math.max(...runs)];
  return most === 1 ? "1 run" : `${least === most ? most : `${least} to ${most}`} runs`;
}
