// The widget's front end: anywidget calls render for every view, and what render returns when the view goes.

import type { WidgetModel } from "./model";
import { card } from "./panels/card";
import { controls } from "./panels/controls";
import { make } from "./panels/dom";
import { grid } from "./panels/grid";
import { status } from "./panels/status";
import type { Scheme } from "./scales";
import { createStore, type Panel } from "./store";

const PANELS: [string, Panel][] = [
  ["header", controls],
  ["view", grid],
  ["status", status],
  ["card", card],
];

function render({ model, el }: { model: WidgetModel; el: HTMLElement }): () => void {
  const view = new AbortController();
  const { signal } = view;
  const root = make("div", "root");
  el.append(root);
  try {
    const store = createStore(model, signal);
    const measure = (): void => {
      const scheme = schemeOf(root);
      root.dataset.scheme = scheme;
      root.classList.toggle("hw-narrow", root.clientWidth < 480);
      store.show({ width: root.clientWidth, ratio: window.devicePixelRatio || 1, scheme });
    };
    measure();
    for (const [name, panel] of PANELS) {
      const box = make("div", name);
      root.append(box);
      const dispose = panel(box, store);
      signal.addEventListener("abort", dispose);
    }
    const observer = new ResizeObserver(measure);
    observer.observe(root);
    signal.addEventListener("abort", () => observer.disconnect());
    // theme.css gives the root's colour a very short transition: its end tells of a new theme, whatever the host.
    for (const end of ["transitionend", "transitioncancel"]) root.addEventListener(end, measure, { signal });
    root.addEventListener(
      "keydown",
      (event) => {
        if (event.key !== "Escape") return;
        store.sync({ selected: [] });
        store.show({ hover: null });
        event.stopPropagation();
      },
      { signal },
    );
    requestAnimationFrame(() => {
      root.dataset.ready = "1";
    });
  } catch (error) {
    root.append(make("div", "error", `The widget could not start: ${error instanceof Error ? error.message : error}`));
    console.error(error);
  }
  return () => {
    view.abort();
    root.remove();
  };
}

/** Light text means a dark page. Painted once, since a host may name its colour in any way CSS knows. */
function schemeOf(root: HTMLElement): Scheme {
  const pen = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  if (!pen) return "light";
  pen.fillStyle = getComputedStyle(root).color;
  pen.fillRect(0, 0, 1, 1);
  const [r = 0, g = 0, b = 0] = pen.getImageData(0, 0, 1, 1).data;
  return 0.3 * r + 0.6 * g + 0.1 * b > 128 ? "dark" : "light";
}

export default { render };
