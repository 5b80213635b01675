// The state of one widget on the page, and the parts of its store that panels take.
//
// A panel is (el, source) => dispose, and its source is the narrowest that it needs: what it
// reads, draws, and changes. The store is all of these at once; panels know nothing of the model.

import type { Scheme } from "./display/palette";
import type { Settings } from "./display/settings";
import type { Picture } from "./display/views/picture";
import type { Cell, Head, Scores } from "./scores/head_scores";
import type { Memo } from "./scores/memo";

/** The head that is pointed at; its card goes to `place` on the screen, where there is one. */
export interface Pointed extends Cell {
  readonly place?: { readonly x: number; readonly y: number };
}

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
  keyof Data | "selected" | "point" | "cursor" | "box" | "width" | "ratio" | "scheme" | "settled"
> &
  Draws &
  Points &
  Syncs<"selected" | "task" | "scale"> &
  Shows<"box" | "spoken">;
export type MapState = MapSource["state"];

/** A part of the widget: fills its element, and returns what takes it down again. */
export type Panel<Source> = (el: HTMLElement, source: Source) => () => void;
