// The card beside the pointer, where the inspector does not stand beside the maps. It stays away
// from the pointer's row and column, so that the cells next to it can be seen.

import { headAt, headName } from "../scores/head_scores";
import type { Asked, Draws, Panel, Reads } from "../state";
import { make, setText } from "./dom";
import { headCard } from "./head_card";

const AWAY = 18; // CSS pixels between pointer and card

export const card: Panel<Reads<Asked | "point" | "docked"> & Draws> = (el, source) => {
  const name = make("strong", "card-head");
  const { el: numbers, draw: fill } = headCard();
  el.append(name, numbers);
  el.hidden = true;
  el.setAttribute("aria-hidden", "true"); // what a key points at is read from the status line

  const draw = (): void => {
    const { state } = source;
    const { scores, point, docked } = state;
    const picture = source.picture();
    const at = point?.place;
    el.hidden = docked || !scores || !picture || !at;
    if (docked || !scores || !picture || !at) return;
    setText(name, headName(scores, headAt(scores, point)));
    fill(state, picture, point);
    place(el, at.x, at.y);
  };
  return source.subscribe((changed) => {
    if (
      changed.has("point") ||
      changed.has("docked") ||
      (!el.hidden && (changed.has("picture") || changed.has("scores")))
    )
      draw();
  });
};

/**
 * Diagonally from the pointer, in the quarter with room for it, inside the widget: no output area
 * cuts it off. Where no quarter has room it goes where it covers least, below or above the pointer.
 */
function place(el: HTMLElement, x: number, y: number): void {
  const root = (el.offsetParent ?? el.parentElement!) as HTMLElement;
  const seen = root.getBoundingClientRect();
  const around = { width: root.offsetWidth, height: root.offsetHeight };
  const zoom = seen.width / around.width || 1; // larger text makes a pixel of ours larger, too
  const [width, height] = [el.offsetWidth, el.offsetHeight];
  const [atX, atY] = [(x - seen.left) / zoom, (y - seen.top) / zoom];
  const right = atX + AWAY + width <= around.width;
  const below = atY + AWAY + height <= around.height;
  const clamp = (value: number, most: number): number => Math.max(0, Math.min(value, most));
  const left = right
    ? atX + AWAY
    : atX - AWAY - width >= 0
      ? atX - AWAY - width
      : clamp(atX - width / 2, around.width - width);
  const top = below ? atY + AWAY : Math.max(0, atY - AWAY - height);
  el.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
}
