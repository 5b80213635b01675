// The tour: six steps that outline a part of the widget and say what it is for. It changes nothing.

import { type TourStep, tourSteps } from "../display/tour_steps";
import type { Panel, Reads, Shows } from "../state";
import { button, focused, make, setText } from "./dom";

const GAP = 10; // CSS pixels between what is outlined and what is said about it
const OUT = 4; // how far the outline stands off

/** A place in the widget, in its own pixels. */
interface Box {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

export const tour: Panel<Reads<"tour" | "scores"> & Shows<"tour">> = (el, source) => {
  const root = el.parentElement!;
  const ring = make("div", "tour-ring");
  const title = make("strong", "tour-title");
  const place = make("span", "tour-place");
  const text = make("p", "tour-text");
  const close = (): void => source.show({ tour: false });
  const back = button("off", "Back", "The step before (←)", () => go(at - 1));
  const next = button("go", "Next", "The next step (→)", () => go(at + 1));
  const box = make(
    "div",
    "tour-box",
    make("div", "tour-head", title, place),
    text,
    make("div", "tour-acts", back, next, button("off", "Close", "End the tour (Escape)", close)),
  );
  box.setAttribute("role", "dialog");
  box.tabIndex = -1;
  el.append(ring, box);
  el.hidden = true;

  let steps: readonly (TourStep & { readonly target: HTMLElement })[] = [];
  let at = 0;
  let before: Element | null = null;
  const go = (to: number): void => {
    if (to >= steps.length) close();
    else if (to >= 0) {
      at = to;
      draw();
    }
  };
  box.addEventListener("keydown", (event) => {
    if (event.key === "ArrowRight") go(at + 1);
    else if (event.key === "ArrowLeft") go(at - 1);
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });

  const draw = (): void => {
    const { title: name, text: words, target } = steps[at]!;
    setText(title, name);
    setText(place, `${at + 1} of ${steps.length}`);
    setText(text, words);
    box.setAttribute("aria-label", `Tour: ${name}, step ${at + 1} of ${steps.length}. ${words}`);
    setText(next, at === steps.length - 1 ? "Done" : "Next");
    back.setAttribute("aria-disabled", String(at === 0));
    target.scrollIntoView({ block: "nearest", inline: "nearest" });
    arrange();
    box.focus({ preventScroll: true });
    box.scrollIntoView({ block: "nearest" });
  };
  const arrange = (): void => {
    const target = boxIn(root, steps[at]!.target);
    const size = { width: box.offsetWidth, height: box.offsetHeight };
    put(ring, {
      left: target.left - OUT,
      top: target.top - OUT,
      width: target.width + 2 * OUT,
      height: target.height + 2 * OUT,
    });
    const { left, top } = beside(target, size, root.clientWidth, root.clientHeight);
    put(box, { left, top });
  };
  const begin = (): void => {
    before = focused(el);
    steps = tourSteps(source.state.scores).flatMap((step) => {
      const found = step.at.map((name) => root.querySelector<HTMLElement>(name));
      const target = found.find((part) => part?.checkVisibility());
      return target ? [{ ...step, target }] : [];
    });
    at = 0;
    el.hidden = !steps.length;
    if (steps.length) draw();
  };
  const end = (): void => {
    el.hidden = true;
    if (before instanceof HTMLElement) before.focus({ preventScroll: true });
  };
  const observer = new ResizeObserver(() => {
    if (!el.hidden) arrange();
  });
  observer.observe(root);
  const stop = source.subscribe((changed) => {
    if (changed.has("tour")) (source.state.tour ? begin : end)();
  });
  return () => {
    observer.disconnect();
    stop();
  };
};

/** Where an element is in the widget, in the widget's own pixels: larger text makes them larger. */
function boxIn(root: HTMLElement, el: HTMLElement): Box {
  const [around, box] = [root.getBoundingClientRect(), el.getBoundingClientRect()];
  const zoom = around.width / root.offsetWidth || 1;
  return {
    left: (box.left - around.left) / zoom,
    top: (box.top - around.top) / zoom,
    width: box.width / zoom,
    height: box.height / zoom,
  };
}

const put = (el: HTMLElement, box: Partial<Box>): void => {
  for (const [name, value] of Object.entries(box))
    el.style[name as "left"] = `${Math.round(value)}px`;
};

/** Below, at the right, at the left or above: the first that fits, and never over the target. */
export function beside(
  target: Box,
  { width, height }: Pick<Box, "width" | "height">,
  across: number,
  down: number,
): Pick<Box, "left" | "top"> {
  const within = (value: number, most: number): number => Math.max(0, Math.min(value, most));
  const [right, bottom] = [target.left + target.width, target.top + target.height];
  const left = within(target.left, across - width);
  const top = within(target.top, down - height);
  const below = { left, top: bottom + GAP };
  const places = [
    below,
    { left: right + GAP, top },
    { left: target.left - GAP - width, top },
    { left, top: target.top - GAP - height },
  ];
  const fits = places.find(
    (at) => at.left >= 0 && at.left + width <= across && at.top >= 0 && at.top + height <= down,
  );
  return fits ?? below;
}
