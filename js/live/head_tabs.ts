// What a live widget says of the head that was selected last: on the prompt, in words, and its
// rank in every method that was run.

import { button, make, setText } from "../panels/dom";
import { headName } from "../scores/head_scores";
import { rankName } from "../scores/rank";
import type { MapSource, Reads } from "../state";
import type { HeadReading, Lab } from "./lab";
import { promptFigure } from "./prompt_figure";
import { visible } from "./tokens";

const SELECT = "Select a head to see what it does.";

/** The Prompt tab: where the head looks, what it promotes there, and every head's part in a token. */
export const onPrompt =
  (lab: Lab, widget: MapSource & Reads<"orientation">) =>
  (el: HTMLElement): (() => void) => {
    const [about, map, lists] = [
      make("div", "head-about"),
      make("div", "prompt-map"),
      make("div", "head-lists"),
    ];
    el.append(about, make("div", "head-prompt", map, lists));
    let query: number | null = null; // the token whose attention is shown; null is the last
    const draw = (): void => {
      const { _head: read } = lab.state;
      about.replaceChildren(
        ...(read.error ? [make("div", "error", read.error)] : []),
        ...(read.head ? attention(read) : [make("p", "prompt-note", SELECT)]),
      );
      lists.replaceChildren(
        ...words("Promotes here", read.promoted),
        ...words("Suppresses here", read.suppressed),
      );
    };
    /** The prompt's tokens, darker where the head looks from the token that was clicked. */
    const attention = (read: HeadReading): HTMLElement[] => {
      const { pattern: weights, tokens } = read;
      if (!weights || !tokens) return read.why_not ? [make("p", "prompt-note", read.why_not)] : [];
      const note = make("p", "prompt-note");
      const spans = tokens.map((token, i) =>
        button("token", visible(token), "", () => {
          query = i;
          look();
        }),
      );
      const look = (): void => {
        const from = Math.min(query ?? tokens.length - 1, tokens.length - 1);
        spans.forEach((span, i) => {
          const weight = weights[from]![i]!;
          span.style.setProperty("--hw-weight", String(weight));
          span.title = `attention from ${visible(tokens[from]!)}: ${weight.toFixed(3)}`;
          span.setAttribute("aria-pressed", String(i === from));
        });
        setText(note, `Where it looks from ${visible(tokens[from]!)}; click a token to change it.`);
      };
      look();
      return [make("div", "tokens", ...spans), note];
    };
    draw();
    let of = ""; // the head and the tokens that are shown
    const stop = lab.subscribe((changed) => {
      if (!changed.has("_head")) return;
      const { head, tokens } = lab.state._head;
      const now = JSON.stringify([head, tokens]);
      if (now !== of) query = null; // more of the same head leaves it
      of = now;
      draw();
    });
    const dispose = promptFigure(lab, widget, map);
    return () => {
      stop();
      dispose();
    };
  };

/** The Words tab: the words that the head amplifies wherever they stand, read from its weights. */
export const inWords =
  (lab: Lab) =>
  (el: HTMLElement): (() => void) => {
    const draw = (): void => {
      const { head, salient, salient_why_not: whyNot } = lab.state._head;
      const rows = salient?.map(
        ([word, gain, to]) => [`${word} → ${to}`, `×${gain.toFixed(1)}`] as const,
      );
      const note = !head ? SELECT : (whyNot ?? (salient ? "" : "Reading its weights…"));
      el.replaceChildren(
        ...(note ? [make("p", "prompt-note", note)] : []),
        ...(rows?.length ? [part("Amplifies anywhere, by its weights alone", rows)] : []),
      );
    };
    draw();
    return lab.subscribe((changed) => {
      if (changed.has("_head")) draw();
    });
  };

/** Under a head's scores: its rank in every method that was run. */
export const inMethods =
  (lab: Lab, source: Reads<"scores">) =>
  (el: HTMLElement): (() => void) => {
    const draw = (): void => {
      const { head } = lab.state._head;
      const name = head ? headName(source.state.scores, head) : "";
      el.replaceChildren(...ranks(lab.state._head, name));
    };
    draw();
    return lab.subscribe((changed) => {
      if (changed.has("_head")) draw();
    });
  };

function part(title: string, rows: readonly (readonly [string, string])[]): HTMLElement {
  const lines = rows.map(([what, value]) =>
    make("tr", "small-row", make("td", "small-text", what), make("td", "small-value", value)),
  );
  return make(
    "div",
    "head-part",
    make("h4", "live-part", title),
    make("table", "small-table", make("tbody", "small-body", ...lines)),
  );
}

function words(title: string, list: HeadReading["promoted"]): HTMLElement[] {
  const signed = (value: number): string => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`;
  const rows = list?.map(([token, value]) => [visible(token), signed(value)] as const);
  return rows?.length ? [part(title, rows)] : [];
}

function ranks({ head, ranks: entries }: HeadReading, name: string): HTMLElement[] {
  if (!head || !entries?.length) return [];
  const rows = entries.map((entry) => {
    const { method, task, partial, rank, of, value } = entry;
    const place = make("td", "small-value", `#${rank} of ${of}`);
    place.title = rankName(entry);
    return make(
      "tr",
      "small-row",
      make("td", "small-text", `${method} · ${task}${partial ? " (stopped early)" : ""}`),
      place,
      make("td", "small-value", value.toPrecision(3).replace("-", "−")),
    );
  });
  return [
    make(
      "div",
      "head-part",
      make("h4", "live-part", `${name} in every method run`),
      make("table", "small-table", make("tbody", "small-body", ...rows)),
    ),
  ];
}
