// The widget's front end: anywidget calls render for every view, and what render returns when the
// view goes.

import { messageOf } from "./display/message";
import type { Scheme } from "./display/palette";
import { changedHeads, turnOff } from "./live/changed";
import { effect } from "./live/effect";
import { inMethods, inWords, onPrompt } from "./live/head_tabs";
import { createLab, type Lab } from "./live/lab";
import { prompt } from "./live/prompt";
import { run, runTroubles } from "./live/run";
import type { WidgetModel } from "./model";
import { nudgeAgreement } from "./panels/agreement";
import { card } from "./panels/card";
import { chips } from "./panels/chips";
import { controls } from "./panels/controls";
import { isField, make } from "./panels/dom";
import { keepFocus } from "./panels/focus";
import { keepInSight } from "./panels/follow";
import { grid } from "./panels/grid";
import { header } from "./panels/header";
import { help } from "./panels/help";
import { type Extras, inspector } from "./panels/inspector";
import { wear } from "./panels/root";
import { status } from "./panels/status";
import { nudge } from "./panels/threshold";
import { tour } from "./panels/tour";
import { undoing } from "./panels/undo";
import type { Panel } from "./state";
import { createStore, type Store } from "./store";

/** From this width on the inspector stands beside the maps; css/inspector.css says how wide. */
const BESIDE = 720; // CSS pixels
/** Narrower than this, the tools of the first line take two lines, and the run takes three. */
const SLIM = 516;
/** Narrower than this, an inspector under the maps has no room for intervals. */
const TIGHT = 480;

type Part = readonly [string, Panel<Store>];

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
    const lab = createLab(model, signal, store.history);
    const [top, main, beside] = [
      make("div", "top"),
      make("div", "main"),
      make("div", "inspector"), // its room is kept from the first frame on
    ];
    const body = make("div", "body", main, beside);
    root.append(top, body);
    signal.addEventListener("abort", keepInSight(beside, body));
    const measure = (): void => {
      const scheme = schemeOf(root);
      const width = root.clientWidth;
      root.dataset.scheme = scheme;
      root.classList.toggle("hw-tight", width < TIGHT);
      root.classList.toggle("hw-slim", width < SLIM);
      root.classList.toggle("hw-narrow", width < 620);
      root.classList.toggle("hw-under", width < BESIDE);
      root.classList.toggle("hw-alone", !store.state.inspector);
      store.show({
        beside: width >= BESIDE,
        docked: width >= BESIDE && store.state.inspector,
        width: main.clientWidth,
        ratio: (window.devicePixelRatio || 1) * store.state.textScale,
        scheme,
      });
    };
    signal.addEventListener("abort", wear(root, store));
    measure();
    const fill = (box: HTMLElement, panel: Panel<Store>): void =>
      signal.addEventListener("abort", panel(box, store));
    const build = (inside: HTMLElement, parts: readonly Part[]): void => {
      for (const [name, panel] of parts) {
        const box = make("div", name);
        inside.append(box);
        fill(box, panel);
      }
    };
    // What the first frame shows.
    build(top, [["header", header]]);
    if (lab) build(top, [["run", run(lab)]]);
    build(top, [
      ["controls", controls],
      ["chips hw-more", chips],
    ]);
    build(main, [["view", grid]]);
    if (lab) signal.addEventListener("abort", follow(store, lab));
    const observer = new ResizeObserver(measure);
    observer.observe(root);
    signal.addEventListener("abort", () => observer.disconnect());
    signal.addEventListener(
      "abort",
      store.subscribe((changed) => {
        if (changed.has("inspector")) measure();
      }),
    );
    // base.css gives the root's colour a very short transition: it ends when the theme
    // has changed, in every host.
    for (const end of ["transitionend", "transitioncancel"])
      root.addEventListener(end, measure, { signal });
    root.addEventListener("keydown", (event) => press(event, store), { signal });
    undoing(root, store, signal);
    keepFocus(root, signal);
    // One frame more: what is painted must still reach the screen.
    afterPaint(() => afterPaint(later));
    // What stands below or comes when asked for: built when the first frame was painted.
    const later = (): void => {
      if (signal.aborted) return;
      if (lab) {
        build(main, [
          ["run-troubles", runTroubles(lab)],
          ["changed", changedHeads(lab)],
        ]);
      }
      build(main, [["status", status]]);
      fill(beside, inspector(lab && extrasOf(lab, store)));
      build(root, [
        ["card", card],
        ["help", help],
        ["tour", tour],
      ]);
      if (lab) {
        lab.ask("shown");
        signal.addEventListener("abort", () => lab.ask("hidden"));
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

/** What the inspector of a live widget has besides. */
const extrasOf = (lab: Lab, store: Store): Extras => ({
  above: prompt(lab),
  actions: turnOff(lab, store),
  underScores: inMethods(lab, store),
  tabs: [
    {
      name: "prompt",
      title: "Prompt",
      about: "Where it looks on the prompt, and what it promotes and suppresses there",
      fill: onPrompt(lab, store),
    },
    {
      name: "words",
      title: "Words",
      about: "The words that it amplifies anywhere, read from its weights",
      fill: inWords(lab),
    },
    {
      name: "effect",
      title: "Effect",
      about: "What turning heads off does to the tasks and to the text",
      fill: effect(lab, store),
    },
  ],
});

/** Show the heads that the lab has changed; tell its kernel when new scores were painted. */
function follow(store: Store, lab: Lab): () => void {
  const change = (): void => store.show({ changed: lab.state._scaled });
  change();
  const stops = [
    lab.subscribe((changed) => {
      if (changed.has("_scaled")) change();
    }),
    // It sends as many pictures of a run as are seen.
    store.subscribe((changed) => {
      if (changed.has("scores")) afterPaint(() => lab.ask("painted"));
    }),
  ];
  return () => {
    for (const stop of stops) stop();
  };
}

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
    if (isField(event.composedPath()[0])) return; // it leaves the field, not the selection
    store.sync({ selected: [] });
    store.point(null);
    store.show({ spoken: "Nothing selected" });
  } else if (event.key === "+" || event.key === "=") nudge(store, 1);
  else if (event.key === "-" || event.key === "_") nudge(store, -1);
  else if (event.key === "[" || event.key === "]")
    nudgeAgreement(store, event.key === "[" ? -1 : 1);
  else if (event.key === "?") store.show({ help: !store.state.help });
  else return;
  event.preventDefault();
  event.stopPropagation();
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
