// Maps and masks over the grid, in plain loops: they run for every map while a slider is dragged.

/**
 * Fills an array from a function of the index (a plain loop: `from` with a function is about 40
 * times slower).
 */
export function filled<T extends Float32Array | Uint8Array | Uint16Array>(
  array: T,
  at: (i: number) => number,
): T {
  for (let i = 0; i < array.length; i++) array[i] = at(i);
  return array;
}

/** How far every value is from zero. */
export function sizes(values: Float32Array): Float32Array {
  const out = new Float32Array(values.length);
  for (let i = 0; i < out.length; i++) out[i] = Math.abs(values[i]!);
  return out;
}

/** 1 where a value is at least the edge, which is a float32 already. */
export function reaches(values: ArrayLike<number>, edge: number): Uint8Array {
  const out = new Uint8Array(values.length);
  for (let i = 0; i < out.length; i++) out[i] = values[i]! >= edge ? 1 : 0;
  return out;
}

/** What a table has for every one of some whole numbers. */
export function lookUp(table: Uint8Array, numbers: Uint16Array | Uint32Array): Uint8ClampedArray {
  const out = new Uint8ClampedArray(numbers.length);
  for (let i = 0; i < out.length; i++) out[i] = table[numbers[i]!]!;
  return out;
}

/** 1 where any of the masks has 1; null when there is none. */
export function either(masks: readonly (Uint8Array | null)[]): Uint8Array | null {
  const [first, ...others] = masks.filter((mask) => mask !== null);
  if (!first) return null;
  const out = first.slice();
  for (const mask of others) for (let i = 0; i < out.length; i++) out[i]! |= mask[i]!;
  return out;
}

/** The least and the largest of all numbers; zero lies between. */
export function ends(maps: readonly ArrayLike<number>[]): readonly [number, number] {
  let [least, most] = [0, 0];
  for (const map of maps) {
    for (let i = 0; i < map.length; i++) {
      const value = map[i]!;
      if (value < least) least = value;
      if (value > most) most = value;
    }
  }
  return [least, most];
}

/** The largest of the numbers that are known. */
export const highest = (numbers: readonly (number | null)[]): number | null =>
  numbers.reduce(
    (most, next) => (next !== null && (most === null || next > most) ? next : most),
    null,
  );
