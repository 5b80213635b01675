// Heads whose outputs are scaled: a chip for each under the maps, the button that turns the
// selected ones off, and the slider that scales them.

import { all, button, keepKeys, make, setText } from "../panels/dom";
import { headName } from "../scores/head_scores";
import type { ChangedHead, Panel, Reads, Shows } from "../state";
import { isOut } from "./kernel";
import type { Lab } from "./lab";

const NAMED = 8; // chips; the others are counted

/** The factors after the selected heads were given one; 1 leaves a head as it is. */
export function withFactor(
  changed: readonly ChangedHead[],
  selected: readonly (readonly [number, number])[],
  factor: number,
): ChangedHead[] {
  const others = changed.filter(([l, h]) => !selected.some(([a, b]) => a === l && b === h));
  const these = selected.map(([l, h]): ChangedHead => [l, h, factor]);
  return factor === 1 ? others : [...others, ...these];
}

/** The factor of the head that was selected last; 1 for a head that is as it was. */
export function factorOf(
  changed: readonly ChangedHead[],
  selected: readonly (readonly [number, number])[],
): number {
  const last = selected[selected.length - 1];
  return changed.find(([l, h]) => l === last?.[0] && h === last[1])?.[2] ?? 1;
}

/** The line of chips under the maps. */
export const changedHeads =
  (lab: Lab): Panel<Reads<"scores" | "changed">> =>
  (el, source) => {
    const chips = make("span", "changed-chips");
    const restore = button("off", "Restore all", "All heads as they are", () =>
      lab.set({ _scaled: [] }),
    );
    el.append(make("span", "choice-name", "Heads changed"), restore, chips);
    el.setAttribute("role", "group");
    el.setAttribute("aria-label", "Heads changed");
    const draw = (): void => {
      const { changed, scores } = source.state;
      el.hidden = !changed.length;
      const named = changed.slice(0, NAMED).map(([layer, head, factor]) => {
        const name = headName(scores, [layer, head]);
        const text = `${name} ×${factor} ✕`;
        const chip = button("chip-changed", text, `Restore ${name}`, () =>
          lab.set({ _scaled: changed.filter(([l, h]) => l !== layer || h !== head) }),
        );
        chip.disabled = isOut(lab.state.kernel);
        return chip;
      });
      restore.disabled = isOut(lab.state.kernel);
      const more = changed.length - named.length;
      chips.replaceChildren(...named, ...(more > 0 ? [`and ${more} more`] : []));
    };
    draw();
    return all(
      source.subscribe((changed) => {
        if (changed.has("changed") || changed.has("scores")) draw();
      }),
      onKernel(lab, draw),
    );
  };

/** Call back when the kernel came or went: what asks it for something is off without it. */
export const onKernel = (lab: Lab, act: () => void): (() => void) =>
  lab.subscribe((changed) => {
    if (changed.has("kernel")) act();
  });

/** The button beside the head's name: off, or on again. */
export const turnOff =
  (lab: Lab, source: Reads<"selected" | "changed"> & Shows<"tab">) =>
  (el: HTMLElement): (() => void) => {
    const off = button("off", "Turn off", "", () => {
      const { selected, changed } = source.state;
      lab.set({ _scaled: withFactor(changed, selected, isOff() ? 1 : 0) });
      if (!isOff()) source.show({ tab: "effect" });
    });
    const isOff = (): boolean => {
      const { selected, changed } = source.state;
      return selected.every(([l, h]) => changed.some(([a, b, by]) => a === l && b === h && !by));
    };
    el.append(off);
    const draw = (): void => {
      const { selected } = source.state;
      const count = selected.length > 1 ? ` ${selected.length}` : "";
      off.disabled = !selected.length || isOut(lab.state.kernel);
      const on = selected.length > 0 && isOff();
      setText(off, on ? `Turn${count} on` : `Turn${count} off`);
      off.title = on
        ? "The selected heads as they are"
        : "Multiply the selected heads' outputs by 0, and see what that does";
    };
    draw();
    return all(
      source.subscribe((changed) => {
        if (changed.has("selected") || changed.has("changed")) draw();
      }),
      onKernel(lab, draw),
    );
  };

/** A slider for the factor of the selected heads. */
export const scaleBy =
  (lab: Lab, source: Reads<"selected" | "changed">) =>
  (el: HTMLElement): (() => void) => {
    const factor = make("input", "slider");
    factor.type = "range";
    [factor.min, factor.max, factor.step] = ["0", "3", "0.05"];
    factor.setAttribute("aria-label", "What the selected heads' outputs are multiplied by");
    keepKeys(factor);
    const value = make("output", "factor");
    // The slider's own value is clamped and rounded to its steps; gates set in Python need not be.
    const write = (by: number): void => {
      setText(value, `×${by}`);
      factor.setAttribute("aria-valuetext", `×${by}`);
    };
    factor.addEventListener("input", () => write(factor.valueAsNumber));
    factor.addEventListener("change", () => {
      const { selected, changed } = source.state;
      lab.set({ _scaled: withFactor(changed, selected, factor.valueAsNumber) });
    });
    el.append(make("label", "choice", make("span", "choice-name", "Scale"), factor, value));
    const draw = (): void => {
      const { selected, changed } = source.state;
      const now = factorOf(changed, selected);
      factor.disabled = !selected.length || isOut(lab.state.kernel);
      factor.value = String(now);
      write(now);
    };
    draw();
    return all(
      source.subscribe((changed) => {
        if (changed.has("selected") || changed.has("changed")) draw();
      }),
      onKernel(lab, draw),
    );
  };
