// Scores as they come from Python: one JSON header and one flat buffer of bytes. Twin of
// headwidget/display/wire.py, which says where each map lies.

import {
  type ScoreMap,
  type Scores,
  type ScoresHeader,
  STEPS,
  type TaskHeader,
  type TaskScores,
  valueAt,
} from "../scores/head_scores";
import { lazy } from "../scores/memo";

const VERSION = 3;
/** The maps of a task that stand before its order statistics. */
const mapsOf = ({ missing }: TaskHeader): number => (missing ? 5 : 4);

/** All that comes with the buffer. */
export interface Header extends ScoresHeader {
  readonly version: number;
  readonly tasks: readonly TaskHeader[];
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
  for (const task of header.tasks) {
    const { name, bits, ranks } = task;
    if (bits !== 32 && (bits !== 16 || ranks.length < 3)) {
      const have = `${ranks.length} order statistics of ${bits} bits`;
      throw new Error(
        `task '${name}' has ${have}; ` +
          "this headwidget reads 32 bits, or 16 where there are 3 or more.",
      );
    }
    exact += mapsOf(task) + (bits === 16 ? 2 : ranks.length);
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
  // Copied only where float32 cannot be read in place; a message is never written to.
  const head = bytes.byteOffset % 4 ? bytes.slice(0, 4 * exact * cells) : bytes;
  // Every platform that runs a browser is little-endian.
  const numbers = new Float32Array(head.buffer, head.byteOffset, exact * cells);
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
    const means = { mean: next(), median: next(), low: next(), high: next() };
    const maps = { ...means, measured: task.missing ? next() : null };
    if (task.bits === 32) {
      const order = task.ranks.map(next);
      const at = (place: number): ScoreMap => order[place]!;
      const ends = { least: at(0), most: at(order.length - 1) };
      return { ...task, ...maps, ...ends, order: at, above: at, steps: [], all: () => order };
    }
    const [least, most] = [next(), next()];
    const rises = [rise, rise + (task.ranks.length - 2) * cells] as const;
    rise = rises[1];
    const steps = lazy(() => climbed(lower.subarray(...rises), upper.subarray(...rises), cells));
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

/**
 * A number of steps above the minimum, for each order statistic: the buffer says how many each
 * has more than the one before.
 */
function climbed(lower: Uint8Array, upper: Uint8Array, cells: number): Uint16Array[] {
  const maps = [new Uint16Array(cells)];
  // One map at a time: a function called often is compiled sooner than one long loop.
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
 * What lies so many steps above the minimum. Worked out in double and rounded once, in this
 * order, as in Python: the two agree in every bit. With `more` 1 it is a step higher, which no
 * run of that rank exceeds.
 */
function values(steps: Uint16Array, least: ScoreMap, most: ScoreMap, more: 0 | 1): ScoreMap {
  const map = new Float32Array(steps.length);
  for (let cell = 0; cell < map.length; cell++) {
    map[cell] = valueAt(steps[cell]! + more, least[cell]!, most[cell]!);
  }
  return map;
}
