// The head that was selected last: its attention on the prompt, the tokens it promotes and
// suppresses there, what it amplifies anywhere, its ranks.

import { button, make, setText } from "../panels/dom";
import { headName } from "../scores/head_scores";
import { rankName } from "../scores/rank";
import type { HeadReading, Lab } from "./lab";
import { visible } from "./tokens";

export const head =
  (lab: Lab) =>
  (el: HTMLElement): (() => void) => {
    const name = make("h3", "live-name");
    const body = make("div", "head-body");
    el.append(name, body);
    let query: number | null = null; // the token whose attention is shown; null is the last

    const draw = (): void => {
      const { _head: read } = lab.state;
      setText(name, read.head ? `Head ${headName(null, read.head)}` : "Head");
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
        setText(
          note,
          `Where it looks from ${visible(tokens[from]!)}; click a token to look from there.`,
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
      const { head, tokens } = lab.state._head;
      const now = JSON.stringify([head, tokens]);
      if (now !== of) query = null; // more of the same head leaves it
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
  const lists: HTMLElement[] = [];
  const signed = (value: number): string => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`;
  if (read.promoted?.length)
    lists.push(
      part(
        "Promotes here",
        read.promoted.map(([t, v]) => [visible(t), signed(v)] as const),
      ),
    );
  if (read.suppressed?.length)
    lists.push(
      part(
        "Suppresses here",
        read.suppressed.map(([t, v]) => [visible(t), signed(v)] as const),
      ),
    );
  if (read.salient?.length)
    lists.push(
      part(
        "Amplifies anywhere",
        read.salient.map(([t, gain, to]) => [`${t} → ${to}`, `×${gain.toFixed(1)}`] as const),
      ),
    );
  if (read.salient_why_not) lists.push(make("p", "prompt-note", read.salient_why_not));
  return lists;
}

function ranks(read: HeadReading): HTMLElement[] {
  if (!read.ranks?.length) return [];
  const rows = read.ranks.map((entry) => {
    const { method, task, partial, rank, of, value } = entry;
    const place = make("td", "small-value", `#${rank} of ${of}`);
    place.title = rankName(entry);
    return make(
      "tr",
      "small-row",
      make("td", "small-text", `${method} · ${task}${partial ? " (partial)" : ""}`),
      place,
      make("td", "small-value", value.toPrecision(3).replace("-", "−")),
    );
  });
  return [
    make(
      "div",
      "head-part",
      make("h4", "live-part", "Rank in every method run"),
      make("table", "small-table", ...rows),
    ),
  ];
}
