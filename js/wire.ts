// Scores as they come from Python: one JSON header and one flat buffer of little-endian float32. Twin of headwidget/wire.py.

export const VERSION = 1;
/** The maps of every task that stand before its order statistics. */
const MAPS = 3;

export interface TaskHeader {
  readonly name: string;
  readonly category: string | null;
  readonly runs: number;
  /** Which order statistics of the sorted runs are kept, smallest first. */
  readonly ranks: readonly number[];
}

export interface Header {
  readonly version: number;
  readonly method: string;
  readonly signed: boolean;
  readonly model: string;
  readonly partial: boolean;
  /** The model's own number of each row. */
  readonly layers: readonly number[];
  readonly heads: number;
  readonly tasks: readonly TaskHeader[];
}

/** One map is layers x heads, layer-major. */
export type ScoreMap = Float32Array;

export interface TaskScores extends TaskHeader {
  readonly mean: ScoreMap;
  /** Lower and upper end of the 95% bootstrap interval of the mean. */
  readonly low: ScoreMap;
  readonly high: ScoreMap;
  /** One map for each kept rank, smallest first. */
  readonly order: readonly ScoreMap[];
}

export interface Scores extends Omit<Header, "tasks"> {
  readonly tasks: readonly TaskScores[];
}

/** Read a header and its buffer, or throw a sentence about what does not fit. */
export function decode(header: Header, buffer: ArrayBufferView | ArrayBuffer): Scores {
  if (header.version !== VERSION) {
    throw new Error(`this buffer is wire version ${header.version}; this headwidget reads version ${VERSION}.`);
  }
  const cells = header.layers.length * header.heads;
  const promised = header.tasks.reduce((sum, task) => sum + (MAPS + task.ranks.length) * cells, 0);
  if (buffer.byteLength !== promised * 4) {
    throw new Error(`the buffer holds ${buffer.byteLength / 4} numbers; its header promises ${promised}.`);
  }
  const flat = floats(buffer);
  let at = 0;
  const next = (): ScoreMap => {
    at += cells;
    return flat.subarray(at - cells, at);
  };
  const tasks = header.tasks.map((task) => ({
    ...task,
    mean: next(),
    low: next(),
    high: next(),
    order: task.ranks.map(next),
  }));
  return { ...header, tasks };
}

/** A copy, because the view that Jupyter hands over may start at any byte of a longer message. */
function floats(buffer: ArrayBufferView | ArrayBuffer): Float32Array {
  const bytes = ArrayBuffer.isView(buffer)
    ? new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength)
    : new Uint8Array(buffer);
  return new Float32Array(bytes.slice().buffer); // every platform that runs a browser is little-endian
}
