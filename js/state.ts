// The state of one widget on the page, and the parts of its store that panels take.
//
// A panel is (el, source) => dispose, and its source is the narrowest that it needs: what it
// reads, draws, and changes. The store is all of these at once; panels know nothing of the model.

import type { PageParts } from "./display/page_file";
import type { Scheme } from "./display/palette";
import type { Settings } from "./display/settings";
import type { Picture } from "./display/views/picture";
import type { Cell, Head, Scores } from "./scores/head_scores";
import type { Memo } from "./scores/memo";

/** The head that is pointed at; its card goes to `place` on the screen, where there is one. */
export interface Pointed extends Cell {
  readonly place?: { readonly x: number; readonly y: number };
}

/** Layer, head, and the factor of its output; 0 is off. */
export type ChangedHead = readonly [number, number, number];

/** What Python knows too. */
export interface Synced extends Settings {
  readonly selected: readonly Head[];
}

/** What only this view knows. */
export interface Shown {
  readonly point: Pointed | null;
  /** Where the keyboard goes on from: the head that was last pointed at. */
  readonly cursor: Cell;
  /** Two corners of the box that is being drawn. */
  readonly box: readonly [Cell, Cell] | null;
  readonly width: number;
  readonly ratio: number;
  readonly scheme: Scheme;
  readonly error: string | null;
  /** Is the list of keys open? */
  readonly help: boolean;
  /** What is read aloud: what a key did. */
  readonly spoken: string;
  /**
   * Was the first frame painted? Until then only what it needs is worked out: controls, and as
   * many maps as there is time for.
   */
  readonly settled: boolean;
  /** Is the agreement slider held? Until it is let go no column of maps comes or goes. */
  readonly agreeing: boolean;
  /** Is the inspector open? Closed, the maps have the whole width. */
  readonly inspector: boolean;
  /** The inspector's tab that was opened last. */
  readonly tab: string;
  /** Is there room for the inspector beside the maps? */
  readonly beside: boolean;
  /** Does it stand there, open, so that the maps need no card over them? */
  readonly docked: boolean;
  /** Heads whose outputs are scaled: layer, head, factor. */
  readonly changed: readonly ChangedHead[];
  /** What type is multiplied by: larger for a room that looks at a projector. */
  readonly textScale: number;
  /** Are the controls that few need put away? */
  readonly simple: boolean;
  /** Is there a kernel that scores? */
  readonly live: boolean;
  /** Is the tour shown? */
  readonly tour: boolean;
  /** Is there something that this view did to undo, or to do again? */
  readonly undoable: boolean;
  readonly redoable: boolean;
}

/** What Python sent, decoded, and what was worked out from it. */
export interface Data {
  readonly scores: Scores | null;
  readonly memo: Memo | null;
}

export type State = Synced & Shown & Data;
/** A part of the state; the picture; or where maps and ticks stand, which a threshold leaves. */
export type Change = keyof State | "picture" | "layout";
export type Listener = (changed: ReadonlySet<Change>) => void;

/** Reads these parts of the state, and hears of changes once a frame. */
export interface Reads<K extends keyof State> {
  readonly state: Pick<State, K>;
  subscribe(listener: Listener): () => void;
}
/** Draws what the view shows. */
export interface Draws {
  /** What is shown now; null without scores. */
  picture(): Picture | null;
}
/** Changes these settings, or the selection; Python hears of it. */
export interface Syncs<K extends keyof Synced> {
  sync(patch: Partial<Pick<Synced, K>>): void;
}
/** Changes what only this view knows. */
export interface Shows<K extends keyof Shown> {
  show(patch: Partial<Pick<Shown, K>>): void;
}
/** Takes back what this view did: settings, selection and gates. */
export interface Undoes {
  undo(): void;
  redo(): void;
  /** Settings and selection as they were when this view began; that can be undone, too. */
  reset(): void;
}
/** Gives what is shown to be kept elsewhere. */
export interface Keeps {
  /** Python that shows the same. */
  python(): string;
  /** What a page of it is made of. */
  pageParts(): PageParts;
  /** The fragment of the page's address that shows the same; null where this is no page. */
  fragment(): string | null;
}
/** Points at a head. */
export interface Points {
  /** Every map and every view shows it; Python hears of it only when it listens. */
  point(point: Pointed | null): void;
}

export type SettingName = keyof Settings;
/** All that is known of the scores and how they are asked for. */
export type Asked = SettingName | keyof Data;
/** What a map is drawn from, and what a pointer or a key on it changes. */
export type MapSource = Reads<
  | keyof Data
  | ("selected" | "point" | "cursor" | "box" | "changed")
  | ("width" | "ratio" | "scheme" | "settled" | "live")
> &
  Draws &
  Points &
  Syncs<"selected" | "task" | "scale"> &
  Shows<"box" | "spoken">;
export type MapState = MapSource["state"];

/** A part of the widget: fills its element, and returns what takes it down again. */
export type Panel<Source> = (el: HTMLElement, source: Source) => () => void;
