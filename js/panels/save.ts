// The Save menu: the picture (clipboard, PNG, SVG) and the numbers of the selected heads (CSV).

import { copyPicture, csv, download, png, svg } from "../display/export";
import { messageOf } from "../display/message";
import type { Asked, Draws, Panel, Reads, State } from "../state";
import { button, make } from "./dom";
import { popup } from "./popup";

type Source = Reads<Asked | "selected"> & Draws;

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
  box.append(
    button(
      "menu-item",
      "Copy picture",
      "To the clipboard, as PNG",
      () => void doing(() => copyPicture(source))(),
    ),
    button("menu-item", "PNG", "Save what is shown as a picture", () => {
      void doing(async () => download(name("png"), await png(source)))();
    }),
    button("menu-item", "SVG", "Save what is shown as a drawing, for print", () => {
      void doing(() => download(name("svg"), new Blob([svg(source)], { type: "image/svg+xml" })))();
    }),
    rows,
    note,
  );
  const draw = (): void => {
    rows.disabled = !source.state.selected.length;
  };
  draw();
  return source.subscribe((changed) => {
    if (changed.has("selected")) draw();
    if (changed.has("view") || changed.has("selected")) note.textContent = "";
  });
}

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
