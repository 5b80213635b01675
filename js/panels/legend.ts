// The legend of classes: a colour, a name and a count each. A click on one makes it stand out.

import { categoryColours, css } from "../display/palette";
import { scaleOf } from "../display/views/picture";
import { categoriesOf } from "../scores/threshold";
import type { Draws, Panel, Reads, Syncs } from "../state";
import { make, setText } from "./dom";

type Source = Reads<"scores" | "scheme" | "isolated" | "threshold"> & Draws & Syncs<"isolated">;

export const legend: Panel<Source> = (el, source) => {
  const list = make("ul", "legend-list");
  list.setAttribute("aria-label", "Categories");
  const note = make("p", "legend-note");
  el.append(list, note);
  let rows: {
    button: HTMLButtonElement;
    colour: HTMLElement;
    name: HTMLElement;
    count: HTMLElement;
  }[] = [];

  const build = (length: number): void => {
    rows = Array.from({ length }, () => {
      const [colour, name, count] = [
        make("span", "swatch"),
        make("span", "legend-name"),
        make("span", "legend-count"),
      ];
      const button = make("button", "legend-entry", colour, name, count);
      button.type = "button";
      button.addEventListener("click", () => {
        const { isolated } = source.state;
        source.sync({ isolated: isolated === name.textContent ? null : name.textContent });
      });
      return { button, colour, name, count };
    });
    list.replaceChildren(...rows.map(({ button }) => make("li", "legend-item", button)));
  };
  const draw = (): void => {
    const picture = source.picture();
    const { scores, scheme, isolated, threshold } = source.state;
    if (!scores || !picture || scaleOf(picture) !== null) return;
    if (rows.length !== picture.legend.length) build(picture.legend.length);
    const colours = categoryColours(categoriesOf(scores).size, scheme);
    // From the top as in the published figure: several categories, the categories, Unclassified.
    [...picture.legend.keys()].reverse().forEach((place, i) => {
      const { button, colour, name, count } = rows[i]!;
      const entry = picture.legend[place]!;
      colour.style.background = css(colours[place]!);
      setText(name, entry.name);
      setText(count, String(entry.count));
      const alone = isolated === entry.name;
      button.setAttribute("aria-pressed", String(alone));
      button.title = alone ? "Show all again" : `Show ${entry.name} alone`;
      button.classList.toggle("hw-empty", entry.count === 0);
    });
    setText(note, threshold === null ? "Cut at each task’s elbow; set a threshold to choose." : "");
  };
  draw();
  return source.subscribe((changed) => {
    if (changed.has("scheme") || changed.has("picture")) draw();
  });
};
