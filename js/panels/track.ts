// A drawing with a line to drag: a range input with a picture behind it. Pointers go to the
// place that they point at; keys and screen readers have the input.

import { HIGH } from "../display/distribution";
import { keepKeys, make } from "./dom";

const SWIPED = 4; // CSS pixels that a finger goes sideways before it moves the line
const SVG = "http://www.w3.org/2000/svg";

export interface Track {
  readonly el: HTMLElement;
  readonly input: HTMLInputElement;
  /** Stand the line at each of these fractions of the width; `parked`: it cuts nothing. */
  stand(at: readonly number[], parked?: boolean): void;
}

/** What a drag does. */
export interface Drags {
  /** The pointer is at this fraction of the width. */
  pick(fraction: number): void;
  hold?(held: boolean): void;
}

/** A track whose picture is `wide` units wide and has these shapes in it. */
export function track(name: string, wide: number, shapes: readonly SVGElement[], drags: Drags) {
  const picture = document.createElementNS(SVG, "svg");
  picture.setAttribute("viewBox", `0 0 ${wide} ${HIGH}`);
  picture.setAttribute("preserveAspectRatio", "none");
  picture.setAttribute("class", "hw-track-picture");
  picture.setAttribute("aria-hidden", "true");
  picture.append(...shapes);
  const lines = [make("div", "track-line"), make("div", "track-line")];
  const input = make("input", "slider");
  input.type = "range";
  input.min = "0";
  keepKeys(input);
  const el = make("div", `track hw-${name}`, picture, ...lines, input);

  let box: DOMRect | null = null; // of the track while it is held
  let tap: PointerEvent | null = null; // where a finger began that may yet scroll the page
  const pick = (event: PointerEvent): void => {
    if (box) drags.pick(Math.max(0, Math.min(1, (event.clientX - box.left) / box.width)));
  };
  const drop = (): void => {
    if (!box) return;
    box = null;
    drags.hold?.(false);
  };
  el.addEventListener("mousedown", (event) => event.preventDefault()); // the input keeps the focus
  el.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || !event.isPrimary || input.disabled) return;
    box = el.getBoundingClientRect();
    el.setPointerCapture(event.pointerId);
    input.focus({ preventScroll: true });
    drags.hold?.(true);
    tap = event.pointerType === "touch" ? event : null;
    if (!tap) pick(event);
  });
  el.addEventListener("pointermove", (event) => {
    if (!event.isPrimary) return;
    if (tap) {
      const [across, down] = [event.clientX - tap.clientX, event.clientY - tap.clientY];
      if (Math.abs(across) < SWIPED || Math.abs(across) < Math.abs(down)) return;
    }
    tap = null;
    pick(event);
  });
  el.addEventListener("pointerup", (event) => {
    if (event.isPrimary && tap) pick(event);
    drop();
  });
  el.addEventListener("pointercancel", drop);
  el.addEventListener("lostpointercapture", drop);

  return {
    el,
    input,
    stand(at, parked = false) {
      lines.forEach((line, i) => {
        const place = at[i];
        line.hidden = place === undefined;
        if (place !== undefined) line.style.left = `${100 * place}%`;
        line.classList.toggle("hw-parked", parked);
      });
    },
  } satisfies Track as Track;
}

/** A shape of a track's picture. */
export function shape(name: string): SVGPathElement {
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("class", `hw-${name}`);
  return path;
}

/** Draw a shape, where it is another than before. */
export function trace(path: SVGPathElement, outline: string): void {
  if (path.getAttribute("d") !== outline) path.setAttribute("d", outline);
}
