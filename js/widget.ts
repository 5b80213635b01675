// The widget's front end: anywidget calls render for every view, and what render returns when the
// view goes.

import { messageOf } from "./display/message";
import type { Scheme } from "./display/palette";
import { viewOf } from "./display/views";
import { head } from "./live/head";
import { intervene } from "./live/intervene";
import { createLab, type Lab } from "./live/lab";
import { prompt } from "./live/prompt";
import { run } from "./live/run";
import type { WidgetModel } from "./model";
import { card } from "./panels/card";
import { chips } from "./panels/chips";
import { agreementStops, agreementText, controls } from "./panels/controls";
import { make } from "./panels/dom";
import { grid } from "./panels/grid";
import { header } from "./panels/header";
import { help } from "./panels/help";
import { wear } from "./panels/root";
import { status } from "./panels/status";
import { nudge } from "./panels/threshold";
import { tour } from "./panels/tour";
import { undoing } from "./panels/undo";
import type { Panel } from "./state";
import { createStore, type Store } from "./store";

type Part = readonly [string, Panel<Store>];

/** What the first frame shows, from the top. */
const FIRST: readonly Part[] = [
  ["header", header],
  ["controls", controls],
  ["chips", chips],
  ["view", grid],
];
/** What stands below it or comes when asked for: built when the first frame was painted. */
const LATER: readonly Part[] = [
  ["status", status],
  ["card", card],
  ["help", help],
  ["tour", tour],
];

function render({ model, el }: { model: WidgetModel; el: HTMLElement }): () => void {
  const view = new AbortController();
  const { signal } = view;
  const root = make("div", "root");
  // JupyterLab's own keys stay out of the widget. It looks at the focused element first: "a" there
  // would make a new cell.
  root.addEventListener("focusin", ({ target }) =>
    (target as Element).setAttribute("data-lm-suppress-shortcuts", ""),
  );
  root.setAttribute("data-lm-suppress-shortcuts", "");
  el.append(root);
  try {
    const store = createStore(model, signal);
    const measure = (): void => {
      const scheme = schemeOf(root);
      root.dataset.scheme = scheme;
      root.classList.toggle("hw-narrow", root.clientWidth < 620);
      const ratio = (window.devicePixelRatio || 1) * store.state.textScale;
      store.show({ width: root.clientWidth, ratio, scheme });
    };
    signal.addEventListener("abort", wear(root, store));
    measure();
    const build = (panels: readonly Part[]): void => {
      for (const [name, panel] of panels) {
        const box = make("div", name);
        root.append(box);
        signal.addEventListener("abort", panel(box, store));
      }
    };
    const lab = createLab(model, signal, store.history);
    build(lab ? [...FIRST.slice(0, 1), ["run", run(lab)], ...FIRST.slice(1)] : FIRST);
    if (lab) signal.addEventListener("abort", reportPaints(store, lab));
    const observer = new ResizeObserver(measure);
    observer.observe(root);
    signal.addEventListener("abort", () => observer.disconnect());
    // base.css gives the root's colour a very short transition: it ends when the theme
    // has changed, in every host.
    for (const end of ["transitionend", "transitioncancel"])
      root.addEventListener(end, measure, { signal });
    root.addEventListener("keydown", (event) => press(event, store), { signal });
    undoing(root, store, signal);
    // One frame more: what is painted must still reach the screen.
    afterPaint(() => afterPaint(later));
    const later = (): void => {
      if (signal.aborted) return;
      build(LATER);
      if (lab) {
        lab.ask("shown");
        signal.addEventListener("abort", () => lab.ask("hidden"));
        build([
          ["prompt", prompt(lab)],
          ["head", head(lab)],
          ["intervene", intervene(lab)],
        ]);
      }
      store.show({ settled: true });
      requestAnimationFrame(() => {
        root.dataset.ready = "1";
      });
    };
  } catch (error) {
    root.append(make("div", "error", `The widget could not start: ${messageOf(error)}`));
    console.error(error);
  }
  return () => {
    view.abort();
    root.remove();
  };
}

/** Tell the kernel when new scores were painted: it sends as many pictures of a run as are seen. */
const reportPaints = (store: Store, lab: Lab): (() => void) =>
  store.subscribe((changed) => {
    if (changed.has("scores")) afterPaint(() => lab.ask("painted"));
  });

/** Call back when the next frame was painted: a message posted in its callback comes after that. */
function afterPaint(act: () => void): void {
  requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      act();
    };
    port2.postMessage(null);
  });
}

/** Keys that work anywhere in the widget. */
function press(event: KeyboardEvent, store: Store): void {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && store.state.help) store.show({ help: false });
  else if (event.key === "Escape") {
    store.sync({ selected: [] });
    store.point(null);
    store.show({ spoken: "Nothing selected" });
  } else if (event.key === "+" || event.key === "=") nudge(store, 1);
  else if (event.key === "-" || event.key === "_") nudge(store, -1);
  else if (event.key === "[" || event.key === "]") agree(store, event.key === "[" ? -1 : 1);
  else if (event.key === "?") store.show({ help: !store.state.help });
  else return;
  event.preventDefault();
  event.stopPropagation();
}

/** Ask for less or more agreement, in the view that has it. */
function agree(store: Store, by: number): void {
  if (!viewOf(store.state).uses.has("agreement")) return;
  const stops = agreementStops(store.state);
  const at = stops.findIndex((stop) => stop >= store.state.agreement - 1e-9);
  store.sync({ agreement: stops[Math.max(0, Math.min(stops.length - 1, at + by))]! });
  store.show({ spoken: agreementText(store.state) });
}

/** Light text means a dark page. */
function schemeOf(root: HTMLElement): Scheme {
  const text = getComputedStyle(root).color;
  const rgb = /^rgba?\((\d+), (\d+), (\d+)/.exec(text)?.slice(1).map(Number) ?? rgbOf(text);
  const [r = 0, g = 0, b = 0] = rgb;
  return 0.3 * r + 0.6 * g + 0.1 * b > 128 ? "dark" : "light";
}

/** A colour in any words that CSS knows, as [red, green, blue]. */
function rgbOf(colour: string): ArrayLike<number> & Iterable<number> {
  const pen = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  if (!pen) return [];
  pen.fillStyle = colour;
  pen.fillRect(0, 0, 1, 1);
  return pen.getImageData(0, 0, 1, 1).data;
}

export default { render };
