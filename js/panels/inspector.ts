// The inspector: the head that is pointed at or was selected last, in tabs. It stands beside the
// maps where there is room, else under them.

import { type Cell, type Head, headAt, headName } from "../scores/head_scores";
import type { Asked, Draws, Panel, Reads, Shows, State } from "../state";
import { all, button, make, setText } from "./dom";
import { headCard } from "./head_card";
import { selectedTable } from "./selected_table";

/** A tab of the inspector beside the head's scores. */
export interface Tab {
  readonly name: string;
  readonly title: string;
  /** What is in it, in a few words. */
  readonly about: string;
  fill(el: HTMLElement): () => void;
}

/** What a live widget adds to the inspector. */
export interface Extras {
  /** Stands above the head: the prompt. */
  above(el: HTMLElement): () => void;
  /** Buttons beside the head's name. */
  actions(el: HTMLElement): () => void;
  /** Stands under the head's scores. */
  underScores(el: HTMLElement): () => void;
  readonly tabs: readonly Tab[];
}

type Source = Reads<Asked | "point" | "selected" | "inspector" | "beside" | "docked" | "tab"> &
  Draws &
  Shows<"inspector" | "tab">;

/** An inspector of scores; with `extras` that of a live widget. */
export const inspector =
  (extras: Extras | null): Panel<Source> =>
  (el, source) => {
    const above = make("div", "prompt");
    const name = make("h3", "inspected-name");
    const note = make("span", "inspected-note");
    const actions = make("span", "inspected-actions");
    const toggle = button("inspector-toggle", "", "", () =>
      source.show({ inspector: !source.state.inspector }),
    );
    const inside = make("div", "inspector-inside");
    el.setAttribute("role", "region");
    el.setAttribute("aria-label", "Inspector");
    el.append(toggle, inside);

    const { el: numbers, draw: fillNumbers } = headCard();
    const hint = make("p", "inspector-hint");
    const scores = make("div", "card", hint, numbers);
    const list: readonly Tab[] = [
      {
        name: "scores",
        title: "Scores",
        about: "Its number, interval and rank in every task",
        fill: (page) => {
          const [table, under] = [make("div", "selected-heads"), make("div", "under-scores")];
          page.append(scores, table, under);
          return all(selectedTable(table, source), extras?.underScores(under) ?? (() => {}));
        },
      },
      ...(extras?.tabs ?? []),
    ];
    const tabs = tabList(list, (tab) => source.show({ tab }));
    if (extras) inside.append(above);
    inside.append(make("div", "inspected", name, note, actions), tabs.bar, ...tabs.pages);
    tabs.bar.hidden = list.length < 2;

    const draw = (): void => {
      const { state } = source;
      const { scores: loaded, inspector: open, beside, docked } = state;
      el.classList.toggle("hw-closed", !open);
      inside.hidden = !open;
      toggle.title = open ? "Close the inspector: the maps get its room" : "Open the inspector";
      toggle.setAttribute("aria-label", open ? "Close the inspector" : "Open the inspector");
      toggle.setAttribute("aria-expanded", String(open));
      setText(toggle, open ? (beside ? "»" : "▾") : beside ? "«" : "▸ Inspector");
      const picture = source.picture();
      const shown = loaded && inspected(state);
      setText(name, loaded && shown ? headName(loaded, shown.head) : "No head");
      setText(note, shown ? shown.note : "");
      el.toggleAttribute("data-pointed", docked && !!state.point?.place);
      numbers.hidden = !shown;
      hint.hidden = !!shown;
      setText(hint, "Point at a head to see its scores; click it to keep them here.");
      if (shown && picture) fillNumbers(state, picture, shown.cell);
      // While another head is pointed at, its scores stand in for the tab that is open.
      tabs.open(shown?.passing ? "scores" : state.tab);
    };
    draw();
    const stop = source.subscribe((changed) => {
      if (
        (
          [
            "point",
            "selected",
            "inspector",
            "beside",
            "docked",
            "tab",
            "scores",
            "picture",
          ] as const
        ).some((part) => changed.has(part))
      )
        draw();
    });
    return all(
      stop,
      extras?.above(above) ?? (() => {}),
      extras?.actions(actions) ?? (() => {}),
      () => tabs.dispose(),
    );
  };

interface Inspected {
  readonly head: Head;
  readonly cell: Cell;
  readonly note: string;
  /** Is it pointed at, while another head, or none, is selected? */
  readonly passing: boolean;
}

/** The head that is shown: the one pointed at, else the last selected; null: none. */
function inspected({
  scores,
  point,
  selected,
}: Pick<State, "scores" | "point" | "selected">): Inspected | null {
  if (!scores) return null;
  const last = selected[selected.length - 1];
  if (point) {
    const head = headAt(scores, point);
    const same = !!last && last[0] === head[0] && last[1] === head[1];
    return {
      head,
      cell: point,
      note: same ? noteOf(selected.length) : "pointed at",
      passing: !same,
    };
  }
  const row = last ? scores.layers.indexOf(last[0]) : -1;
  if (!last || row < 0 || last[1] >= scores.heads) return null;
  return {
    head: last,
    cell: { row, head: last[1] },
    note: noteOf(selected.length),
    passing: false,
  };
}

const noteOf = (selected: number): string =>
  selected > 1 ? `selected last, of ${selected}` : "selected";

/** A list of tabs with its pages; a page is filled when it is first opened. */
function tabList(
  list: readonly Tab[],
  choose: (name: string) => void,
): {
  readonly bar: HTMLElement;
  readonly pages: readonly HTMLElement[];
  open(name: string): void;
  dispose(): void;
} {
  const filled = new Map<string, () => void>();
  const group = `hw-tabs-${Math.random().toString(36).slice(2)}`; // ids are the document's
  const parts = list.map(({ name, title, about, fill }) => {
    const tab = button("tab", title, about, () => choose(name));
    tab.setAttribute("role", "tab");
    tab.id = `${group}-${name}`;
    const page = make("div", "tab-page");
    page.dataset.tab = name;
    if (list.length > 1) {
      page.setAttribute("role", "tabpanel");
      page.setAttribute("aria-labelledby", tab.id);
      page.tabIndex = 0; // what is in it may have to be scrolled by keys
    }
    return { name, tab, page, fill };
  });
  const bar = make("div", "tabs", ...parts.map(({ tab }) => tab));
  bar.setAttribute("role", "tablist");
  bar.setAttribute("aria-label", "What is shown of the head");
  bar.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const at = parts.findIndex(({ tab }) => tab.getAttribute("aria-selected") === "true");
    if (!by || at < 0) return;
    const next = parts[(at + by + parts.length) % parts.length]!;
    choose(next.name);
    next.tab.focus();
    event.preventDefault();
    event.stopPropagation();
  });
  return {
    bar,
    pages: parts.map(({ page }) => page),
    open(wanted) {
      const now = parts.some(({ name }) => name === wanted) ? wanted : parts[0]!.name;
      for (const { name, tab, page, fill } of parts) {
        const open = name === now;
        if (open && !filled.has(name)) filled.set(name, fill(page));
        tab.setAttribute("aria-selected", String(open));
        tab.tabIndex = open ? 0 : -1;
        page.hidden = !open;
      }
    },
    dispose() {
      for (const dispose of filled.values()) dispose();
      filled.clear();
    },
  };
}
