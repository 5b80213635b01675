// The first line: what is shown, which view of it, and the menus.

import type { View } from "../display/settings";
import type { Panel, State } from "../store";
import { about as aboutScores } from "./about";
import { all, button, make, setText } from "./dom";
import { menu } from "./menu";
import { options } from "./options";

const VIEWS: readonly (readonly [View, string, string])[] = [
  ["tasks", "Tasks", "One map a task"],
  ["agreement", "Agreement", "How many runs agree: always, any, and between"],
  ["categories", "Categories", "Which categories a head belongs to"],
];

export const header: Panel = (el, store) => {
  const model = make("span", "model");
  const about = make("span", "about");
  const views = VIEWS.map(([view, text, title]) =>
    button("view-tab", text, title, () => store.sync({ view, isolated: null })),
  );
  const tabs = make("div", "views", ...views);
  tabs.setAttribute("role", "group");
  tabs.setAttribute("aria-label", "View");
  const keys = button("icon", "?", "List the keys (?)", () =>
    store.show({ help: !store.state.help }),
  );
  keys.setAttribute("aria-label", "Keys");
  const [display, more, from] = [
    make("details", "menu"),
    make("details", "menu"),
    make("details", "menu"),
  ];
  el.append(
    make("div", "what", model, about),
    make("div", "tools", tabs, display, more, from, keys),
  );
  const disposes = [options(display, store), menu(more, store), aboutScores(from, store)];

  const draw = (): void => {
    const { scores, view } = store.state;
    el.hidden = !scores;
    if (!scores) return;
    setText(model, scores.model || "Attention heads");
    setText(
      about,
      [
        scores.method,
        runsText(store.state),
        scores.tasks.some((task) => task.unscored)
          ? "not all scored yet"
          : scores.partial
            ? "stopped early"
            : "",
      ]
        .filter(Boolean)
        .join(" · "),
    );
    VIEWS.forEach(([name], i) => {
      views[i]!.setAttribute("aria-pressed", String(name === view));
    });
  };
  draw();
  const stop = store.subscribe((changed) => {
    if (changed.has("scores") || changed.has("view")) draw();
  });
  return all(stop, ...disposes);
};

function runsText({ scores }: State): string {
  const runs = scores!.tasks.map((task) => task.runs);
  if (!runs.length) return "";
  const [least, most] = [Math.min(...runs), Math.max(...runs)];
  return most === 1 ? "1 run" : `${least === most ? most : `${least} to ${most}`} runs`;
}
