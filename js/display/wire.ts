// Scores as they come from Python: one JSON header and one flat buffer of bytes. Twin of headwidget/wire.py, which says how they lie.

export const VERSION = 2;
/** The maps of every task that stand before its order statistics. */
const MAPS = 4;
/** How many steps the range of a head has: 0 is its minimum, this its maximum. */
export const STEPS = 65535;

export interface TaskHeader {
  readonly name: string;
  readonly category: string | null;
  /** How well the model did the task and how many prompts were left out, where that is known. */
  readonly note: string | null;
  /** Why the task's scores should not be believed, where something speaks against them. */
  readonly warning: string | null;
  /** What a score reaches by chance alone, where the method has a control. */
  readonly floor: number | null;
  readonly runs: number;
  /** Which order statistics of the sorted runs are kept, smallest first. */
  readonly ranks: readonly number[];
  /** 32: all of them are exact. 16: those between minimum and maximum are steps of the head's range, rounded down. */
  readonly bits: number;
  /** The rows that a live run has not come to yet: their numbers mean nothing. */
  readonly unscored?: readonly number[];
}

export interface Header {
  readonly version: number;
  readonly method: string;
  readonly signed: boolean;
  readonly model: string;
  readonly partial: boolean;
  /** Where the scores come from: a label and a text each. */
  readonly about: readonly (readonly [string, string])[];
  /** What rows and columns are called. */
  readonly axes: readonly [string, string];
  /** The model's own number of each row. */
  readonly layers: readonly number[];
  readonly heads: number;
  readonly tasks: readonly TaskHeader[];
}

/** One map is layers x heads, layer-major. */
export type ScoreMap = Float32Array;

export interface TaskScores extends TaskHeader {
  readonly mean: ScoreMap;
  readonly median: ScoreMap;
  /** Lower and upper end of the 95% bootstrap interval of the mean. */
  readonly low: ScoreMap;
  readonly high: ScoreMap;
  /** The smallest and the largest run. */
  readonly least: ScoreMap;
  readonly most: ScoreMap;
  /** The order statistic at that place of `ranks`; of 16 bits rounded down. */
  order(place: number): ScoreMap;
  /** The same, of 16 bits rounded up: what a run must be compared with by how far it lies below. */
  above(place: number): ScoreMap;
  /** Of 16 bits: how many steps of its head's range each order statistic lies above the minimum; none where all are exact. */
  readonly steps: readonly Uint16Array[];
  /**
   * All of `order` (or, with direction -1, of `above`), the fastest to search in. Of 16 bits null when it is first asked for:
   * to unpack them all would hold up a first paint, which searches the steps instead.
   */
  all(direction: 1 | -1): readonly ScoreMap[] | null;
}

export interface Scores extends Omit<Header, "tasks"> {
  readonly tasks: readonly TaskScores[];
}

/** Read a header and its buffer, or throw a sentence about what does not fit. */
export function decode(header: Header, buffer: ArrayBufferView | ArrayBuffer): Scores {
  if (header.version !== VERSION) {
    throw new Error(
      `this buffer is wire version ${header.version}; this headwidget reads version ${VERSION}.`,
    );
  }
  const cells = header.layers.length * header.heads;
  let exact = 0; // maps of float32
  let between = 0; // maps of uint16
  for (const { name, bits, ranks } of header.tasks) {
    if (bits !== 32 && (bits !== 16 || ranks.length < 3)) {
      const have = `${ranks.length} order statistics of ${bits} bits`;
      throw new Error(
        `task '${name}' has ${have}; this headwidget reads 32 bits, or 16 where there are 3 or more.`,
      );
    }
    exact += MAPS + (bits === 16 ? 2 : ranks.length);
    between += bits === 16 ? ranks.length - 2 : 0;
  }
  const promised = (4 * exact + 2 * between) * cells;
  if (buffer.byteLength !== promised) {
    throw new Error(
      `the buffer holds ${buffer.byteLength} bytes; its header promises ${promised}.`,
    );
  }
  // The view that Jupyter hands over may start at any byte of a longer message.
  const bytes = ArrayBuffer.isView(buffer)
    ? new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength)
    : new Uint8Array(buffer);
  // Nothing is copied that need not be: no message is written to after it came, and its bytes stay while they are referred to.
  const head = bytes.byteOffset % 4 ? bytes.slice(0, 4 * exact * cells) : bytes;
  const numbers = new Float32Array(head.buffer, head.byteOffset, exact * cells); // every platform that runs a browser is little-endian
  const planes = bytes.subarray(4 * exact * cells);
  const lower = planes.subarray(0, between * cells);
  const upper = planes.subarray(between * cells);
  let at = 0;
  let rise = 0;
  const next = (): ScoreMap => {
    at += cells;
    return numbers.subarray(at - cells, at);
  };
  const tasks = header.tasks.map((task): TaskScores => {
    const maps = { mean: next(), median: next(), low: next(), high: next() };
    if (task.bits === 32) {
      const order = task.ranks.map(next);
      const at = (place: number): ScoreMap => order[place]!;
      const ends = { least: at(0), most: at(order.length - 1) };
      return { ...task, ...maps, ...ends, order: at, above: at, steps: [], all: () => order };
    }
    const [least, most] = [next(), next()];
    const mine = [rise, rise + (task.ranks.length - 2) * cells] as const;
    rise = mine[1];
    const steps = lazy(() => climbed(lower.subarray(...mine), upper.subarray(...mine), cells));
    const unpacked = ([0, 1] as const).map((more) =>
      task.ranks.map((_, place) => lazy(() => values(steps()[place]!, least, most, more))),
    );
    const last = task.ranks.length - 1;
    const exact = (place: number): ScoreMap | null =>
      place === 0 ? least : place === last ? most : null;
    const order = (place: number): ScoreMap => exact(place) ?? unpacked[0]![place]!();
    const above = (place: number): ScoreMap => exact(place) ?? unpacked[1]![place]!();
    const whole = [order, above].map((at) => lazy(() => task.ranks.map((_, place) => at(place))));
    const asked = new Set<number>();
    return {
      ...task,
      ...maps,
      least,
      most,
      order,
      above,
      get steps() {
        return steps(); // most of the work, and a first paint of means needs none of it
      },
      all: (direction) => {
        if (asked.has(direction)) return whole[direction === 1 ? 0 : 1]!();
        asked.add(direction);
        return null;
      },
    };
  });
  return { ...header, tasks };
}

/** What `make` makes, made when it is first asked for. */
export function lazy<T>(make: () => T): () => T {
  let made: { value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

/** A number of steps above the minimum, for each order statistic: the buffer says how many each has more than the one before. */
function climbed(lower: Uint8Array, upper: Uint8Array, cells: number): Uint16Array[] {
  const maps = [new Uint16Array(cells)];
  // One map at a time: a function called often is compiled sooner than one long loop (measured).
  const climb = (from: Uint16Array, to: Uint16Array, low: Uint8Array, high: Uint8Array): void => {
    for (let cell = 0; cell < cells; cell++)
      to[cell] = from[cell]! + low[cell]! + (high[cell]! << 8);
  };
  for (let start = 0; start < lower.length; start += cells) {
    const map = new Uint16Array(cells);
    climb(
      maps[maps.length - 1]!,
      map,
      lower.subarray(start, start + cells),
      upper.subarray(start, start + cells),
    );
    maps.push(map);
  }
  return [...maps, new Uint16Array(cells).fill(STEPS)];
}

/**
 * What lies so many steps above the minimum. Worked out in double and rounded once, in this order, as in Python: the two
 * agree in every bit. With `more` 1 it is a step higher, which no run of that rank exceeds.
 */
function values(steps: Uint16Array, least: ScoreMap, most: ScoreMap, more: 0 | 1): ScoreMap {
  const map = new Float32Array(steps.length);
  for (let cell = 0; cell < map.length; cell++) {
    map[cell] = valueAt(steps[cell]! + more, least[cell]!, most[cell]!);
  }
  return map;
}

/** The same for one head, before it is rounded to float32. */
export function valueAt(steps: number, least: number, most: number): number {
  return steps >= STEPS ? most : least + steps * ((most - least) / STEPS);
}
