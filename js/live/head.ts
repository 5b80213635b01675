// The head that was selected last: its attention on the prompt, the tokens it promotes and suppresses there, what it amplifies anywhere, its ranks.

import { button, make, setText } from "../panels/dom";
import { headName } from "../store";
import type { HeadReading, Lab } from "./lab";
import { shown } from "./prompt";

export const head =
  (lab: Lab) =>
  (el: HTMLElement): (() => void) => {
    const name = make("h3", "live-name");
    const body = make("div", "head-body");
    el.append(name, body);
    let query: number | null = null; // the token whose attention is shown; null is the last

    const draw = (): void => {
      const { _head: read } = lab.state;
      setText(name, read.head ? `Head ${headName(read.head)}` : "Head");
      if (!read.head) {
        body.replaceChildren(make("p", "prompt-note", "Select a head to see what it does."));
        return;
      }
      body.replaceChildren(
        ...(read.error ? [make("div", "error", read.error)] : []),
        ...pattern(read),
        ...lists(read),
        ...ranks(read),
      );
    };
    /** The prompt's tokens, darker where the head looks from the token that was clicked. */
    const pattern = (read: HeadReading): HTMLElement[] => {
      const { pattern: weights, tokens } = read;
      if (!weights || !tokens) return read.why_not ? [make("p", "prompt-note", read.why_not)] : [];
      const note = make("p", "prompt-note");
      const spans = tokens.map((token, i) =>
        button("token", shown(token), "", () => {
          query = i;
          look();
        }),
      );
      const look = (): void => {
        const from = Math.min(query ?? tokens.length - 1, tokens.length - 1);
        spans.forEach((span, i) => {
          const weight = weights[from]![i]!;
          span.style.setProperty("--hw-weight", String(weight));
          span.title = `attention from ${shown(tokens[from]!)}: ${weight.toFixed(3)}`;
          span.setAttribute("aria-pressed", String(i === from));
        });
        setText(
          note,
          `Where it looks from ${shown(tokens[from]!)}; click a token to look from there.`,
        );
      };
      look();
      const title = make("h4", "live-part", "Attention on the prompt");
      return [make("div", "head-part", title, make("div", "tokens", ...spans), note)];
    };
    draw();
    let of = ""; // the head and the tokens that are shown
    return lab.subscribe((changed) => {
      if (!changed.has("_head")) return;
      const { head: one, tokens } = lab.state._head;
      const now = JSON.stringify([one, tokens]);
      if (now !== of) query = null; // what more is found of the same head leaves it
      of = now;
      draw();
    });
  };

function lists(read: HeadReading): HTMLElement[] {
  const part = (title: string, rows: readonly (readonly [string, string])[]): HTMLElement =>
    make(
      "div",
      "head-part",
      make("h4", "live-part", title),
      make(
        "table",
        "small-table",
        ...rows.map(([what, value]) =>
          make("tr", "small-row", make("td", "small-text", what), make("td", "small-value", value)),
        ),
      ),
    );
  const found: HTMLElement[] = [];
  const signed = (value: number): string => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`;
  if (read.promoted?.length)
    found.push(
      part(
        "Promotes here",
        read.promoted.map(([t, v]) => [shown(t), signed(v)] as const),
      ),
    );
  if (read.suppressed?.length)
    found.push(
      part(
        "Suppresses here",
        read.suppressed.map(([t, v]) => [shown(t), signed(v)] as const),
      ),
    );
  if (read.salient?.length)
    found.push(
      part(
        "Amplifies anywhere",
        read.salient.map(([t, gain, to]) => [`${t} → ${to}`, `×${gain.toFixed(1)}`] as const),
      ),
    );
  if (read.salient_why_not) found.push(make("p", "prompt-note", read.salient_why_not));
  return found;
}

function ranks(read: HeadReading): HTMLElement[] {
  if (!read.ranks?.length) return [];
  const rows = read.ranks.map((one) =>
    make(
      "tr",
      "small-row",
      make("td", "small-text", `${one.method} · ${one.task}${one.partial ? " (partial)" : ""}`),
      make("td", "small-value", `#${one.rank} of ${one.of}`),
      make("td", "small-value", one.value.toPrecision(3).replace("-", "−")),
    ),
  );
  return [
    make(
      "div",
      "head-part",
      make("h4", "live-part", "Rank in every method run"),
      make("table", "small-table", ...rows),
    ),
  ];
}
