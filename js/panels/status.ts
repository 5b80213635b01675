// Below the maps: the selected heads as text, buttons that change them, and what went wrong.

import { inMask, inverted } from "../display/selection";
import { type Head, headName } from "../scores/head_scores";
import type { Asked, Draws, Panel, Reads, Shows, Syncs } from "../state";
import { button, make, setText } from "./dom";

const NAMED = 12; // heads named one by one
const PAUSE = 150; // ms before text is read aloud: a held key is read once

type Source = Reads<Asked | "selected" | "error" | "spoken"> &
  Draws &
  Syncs<"selected"> &
  Shows<"spoken">;

export const status: Panel<Source> = (el, source) => {
  const text = make("span", "selected");
  const pass = button(
    "off",
    "Select what passes",
    "Select every head that passes the threshold",
    () => {
      const { scores } = source.state;
      const mask = source.picture()?.passing;
      if (scores && mask) choose(inMask(scores, mask));
    },
  );
  const invert = button("off hw-more", "Invert", "Select all others instead", () =>
    choose(inverted(source.state)),
  );
  const clear = button("off", "Clear", "Select nothing (Escape)", () => {
    (el.parentElement?.querySelector(".hw-plot") as HTMLElement | null)?.focus({
      preventScroll: true,
    }); // the button goes
    choose([]);
  });
  const choose = (selected: Head[]): void => {
    source.sync({ selected });
    source.show({ spoken: `${selected.length} selected` });
  };
  const error = make("div", "error");
  error.setAttribute("role", "alert");
  const bar = make("div", "selection", text, pass, invert, clear);
  const spoken = make("div", "spoken");
  spoken.setAttribute("role", "status");
  el.append(error, bar, spoken);

  const draw = (): void => {
    const { selected, error: wrong, scores } = source.state;
    setText(error, wrong ?? "");
    error.hidden = !wrong;
    const names = selected
      .slice(0, NAMED)
      .map((head) => headName(scores, head))
      .join(", ");
    const more = selected.length > NAMED ? ` and ${selected.length - NAMED} more` : "";
    setText(
      text,
      selected.length
        ? `${selected.length} selected: ${names}${more}`
        : "Click to select; shift adds, a drag selects a box, Escape clears.",
    );
    clear.hidden = invert.hidden = !selected.length;
    pass.hidden = !source.picture()?.passing;
    bar.hidden = !scores;
  };
  draw();
  let speaking: ReturnType<typeof setTimeout> | undefined;
  const stop = source.subscribe((changed) => {
    if (changed.has("selected") || changed.has("error") || changed.has("picture")) draw();
    if (!changed.has("spoken")) return;
    clearTimeout(speaking);
    speaking = setTimeout(() => setText(spoken, source.state.spoken), PAUSE);
  });
  return () => {
    clearTimeout(speaking);
    stop();
  };
};
