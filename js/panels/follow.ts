// Keeps the inspector in sight while long maps are scrolled. `position: sticky` cannot: in
// JupyterLab an output is a scroll container of its own, which never scrolls.

/** Move `el` down inside `body` as far as the page is scrolled past its top; gives the clean-up. */
export function keepInSight(el: HTMLElement, body: HTMLElement): () => void {
  let moved = 0;
  let asked = 0;
  const place = (): void => {
    asked = 0;
    const [inside, at] = [body.getBoundingClientRect(), el.getBoundingClientRect()];
    const beside = at.left > inside.left + 1;
    const shift = beside ? shiftOf(inside, at.height, seen(body)) : 0;
    if (shift === moved) return;
    moved = shift;
    el.style.transform = shift ? `translateY(${shift / zoomOf(el)}px)` : "";
  };
  const ask = (): void => {
    asked ||= requestAnimationFrame(place);
  };
  const passive = { capture: true, passive: true };
  document.addEventListener("scroll", ask, passive);
  const observer = new ResizeObserver(ask);
  for (const part of [body, el]) observer.observe(part);
  return () => {
    document.removeEventListener("scroll", ask, passive);
    observer.disconnect();
    cancelAnimationFrame(asked);
  };
}

interface Side {
  readonly top: number;
  readonly bottom: number;
}

/** How far down something of this height stands in `body`, so that what is seen has its top. */
export function shiftOf(body: Side, height: number, seen: Side): number {
  if (height > seen.bottom - seen.top) return 0; // its end could never be read
  const most = Math.max(0, body.bottom - body.top - height);
  return Math.round(Math.max(0, Math.min(most, seen.top - body.top)));
}

/** What can be seen of the page where `el` is: the window, less what scrolling ancestors hide. */
function seen(el: HTMLElement): Side {
  let [top, bottom] = [0, window.innerHeight];
  for (let at = el.parentElement; at; at = at.parentElement) {
    if (at.scrollHeight <= at.clientHeight + 1 || at === document.documentElement) continue;
    if (getComputedStyle(at).overflowY === "visible") continue;
    const box = at.getBoundingClientRect();
    [top, bottom] = [Math.max(top, box.top), Math.min(bottom, box.bottom)];
  }
  return { top, bottom };
}

/** What the size of text multiplies lengths by. */
const zoomOf = (el: HTMLElement): number =>
  (el as HTMLElement & { currentCSSZoom?: number }).currentCSSZoom ?? 1;
