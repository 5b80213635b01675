// Undo and redo of what one view did: settings, selection and gates.
//
// A step is what was changed between two seals: the view seals when a pointer goes down, a click
// ends or a key is pressed anew, so a drag and a held key are one step each. Changes that come
// from the kernel or from another view are not recorded. Undo sets the keys of a step to what
// they were before it, and redo to what they were before the undo: neither loses a value.

type Values = Readonly<Record<string, unknown>>;

/** A part of the state whose changes can be undone. */
export interface Side {
  get(key: string): unknown;
  put(values: Values): void;
}

/** What each key was, by the part of the state that has it. */
type Step = Map<Side, Record<string, unknown>>;

export interface History {
  /** These keys are about to be set: remember what they are. */
  note(side: Side, values: Values): void;
  /** What comes next is another step. */
  seal(): void;
  /** Undo or redo a step and give the keys that changed; null where there is none. */
  back(): string[] | null;
  forth(): string[] | null;
}

const MOST = 200; // steps that are kept
const PAUSE = 1000; // ms; a change that comes later than this is another step, sealed or not

/** A history that calls `changed` with whether there is something to undo and to redo. */
export function createHistory(
  changed: (undoable: boolean, redoable: boolean) => void,
  clock: () => number = () => performance.now(),
): History {
  const past: Step[] = [];
  const future: Step[] = [];
  let open: Step | null = null; // the step that goes on
  let last = 0; // when it was last added to
  let replaying = false;
  const tell = (): void => changed(past.length > 0, future.length > 0);

  const seal = (): void => {
    if (open && isNothing(open)) {
      past.pop(); // a drag that ended where it began
      tell();
    }
    open = null;
  };
  const move = (from: Step[], to: Step[]): string[] | null => {
    seal();
    const step = from.pop();
    if (!step) return null;
    to.push(new Map([...step].map(([side, values]) => [side, valuesOf(side, values)])));
    replaying = true;
    try {
      for (const [side, values] of step) side.put(values);
    } finally {
      replaying = false;
    }
    tell();
    return [...step.values()].flatMap((values) => Object.keys(values));
  };
  return {
    note(side, values) {
      if (replaying) return;
      const now = clock();
      if (now - last > PAUSE) seal();
      const keys = Object.keys(values).filter((key) => !isSame(side.get(key), values[key]));
      if (!keys.length) return;
      last = now;
      if (!open) {
        open = new Map();
        past.push(open);
        if (past.length > MOST) past.shift();
        future.length = 0;
      }
      const before = open.get(side) ?? {};
      open.set(side, before);
      for (const key of keys) if (!(key in before)) before[key] = side.get(key);
      tell();
    },
    seal,
    back: () => move(past, future),
    forth: () => move(future, past),
  };
}

/** The same as JSON: every value in question is. */
const isSame = (a: unknown, b: unknown): boolean =>
  Object.is(a, b) || JSON.stringify(a) === JSON.stringify(b);

const valuesOf = (side: Side, values: Values): Record<string, unknown> =>
  Object.fromEntries(Object.keys(values).map((key) => [key, side.get(key)]));

/** Is everything as it was before the step? */
const isNothing = (step: Step): boolean =>
  [...step].every(([side, values]) => isSame(valuesOf(side, values), values));

/** What the keys of a step are called, for those who hear it. */
export function stepName(keys: readonly string[]): string {
  const names: Record<string, string> = { selected: "selection", _scaled: "changed heads" };
  return keys.map((key) => names[key] ?? key).join(", ");
}
