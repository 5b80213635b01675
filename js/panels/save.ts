// The Save menu: the picture (clipboard, PNG, SVG), the numbers of the selected heads (CSV), the
// whole widget as a page, and the Python that shows the same.

import { copyPicture, csv, download, png, svg } from "../display/export";
import { messageOf } from "../display/message";
import { pageFile, whyNoPage } from "../display/page_file";
import { nothingMeasured } from "../scores/missing";
import type { Asked, Draws, Keeps, Panel, Reads, State } from "../state";
import { copier } from "./copy";
import { button, make } from "./dom";
import { popup } from "./popup";

type Source = Reads<Asked | "selected" | "textScale"> & Draws & Keeps;

export const saveMenu: Panel<Source> = (el, source) =>
  popup(el, "Save", (box) => fill(box, source));

function fill(box: HTMLElement, source: Source): () => void {
  const note = make("p", "option-note");
  note.setAttribute("role", "status");
  /** Say what was done, or what went wrong, beside the button. */
  const doing = (act: () => Promise<string> | string) => async (): Promise<void> => {
    try {
      note.textContent = await act();
    } catch (error) {
      note.textContent = messageOf(error);
    }
  };
  const name = (ending: string): string => `${fileName(source.state)}.${ending}`;
  const rows = button("menu-item", "CSV of selected heads", "Their numbers in every task", () => {
    void doing(() => download(name("csv"), new Blob([csv(source.state)], { type: "text/csv" })))();
  });
  const { el: text, copy } = copier();
  const item = (words: string, title: string, act: () => Promise<string> | string) =>
    button("menu-item", words, title, () => void doing(act)());
  const page = item("Page (HTML)", "", async () =>
    download(name("html"), new Blob([await pageFile(source.pageParts(), source.state.scores!)])),
  );
  const link = item("Copy link", "This page’s address, with what is shown now", () =>
    copy(location.href.replace(/#.*/s, "") + source.fragment()),
  );
  link.hidden = source.fragment() === null;
  box.append(
    item("Copy picture", "To the clipboard, as PNG", () => copyPicture(source)),
    item("PNG", "Save what is shown as a picture", async () =>
      download(name("png"), await png(source)),
    ),
    item("SVG", "Save what is shown as a drawing, for print", () =>
      download(name("svg"), new Blob([svg(source)], { type: "image/svg+xml" })),
    ),
    rows,
    page,
    link,
    item("Copy as Python", "The call that shows the same", () => copy(source.python())),
    note,
    text,
  );
  const draw = (): void => {
    const { scores, selected } = source.state;
    rows.disabled = !selected.length;
    const why = !scores || nothingMeasured(scores) ? NOTHING_YET : whyNoPage(source.pageParts());
    page.disabled = why !== null;
    page.title = why ?? "The whole widget as one file that needs no kernel";
  };
  draw();
  return source.subscribe((changed) => {
    if (changed.has("selected") || changed.has("scores")) draw();
    if (!changed.has("view") && !changed.has("selected")) return;
    note.textContent = "";
    text.hidden = true;
  });
}

const NOTHING_YET = "Nothing is scored yet.";

/** A file's name that any system takes: what it shows, in plain letters. */
function fileName({ scores, view }: Pick<State, "scores" | "view">): string {
  const words = `${scores?.model ?? ""} ${scores?.method ?? ""} ${view}`;
  return (
    words
      .replace(/[^\p{L}\p{N}]+/gu, "-")
      .replace(/^-+|-+$/g, "")
      .slice(0, 80) || "heads"
  );
}
