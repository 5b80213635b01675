// What was worked out for some scores, kept while they are shown: a drag must be drawn within a
// frame.

import type { Scores, TaskScores } from "./head_scores";

/** The one cache of everything that follows from some scores. */
export class Memo {
  /** How many heads there are: layers x heads of a layer. */
  readonly cells: number;
  readonly #tasks: ReadonlyMap<string, TaskScores>;
  readonly #values = new Map<string, unknown>();
  readonly #latest = new WeakMap<object, { readonly key: readonly unknown[]; value: unknown }>();

  constructor(readonly scores: Scores) {
    this.cells = scores.layers.length * scores.heads;
    this.#tasks = new Map(scores.tasks.map((task) => [task.name, task]));
  }

  /** The task of that name, where these scores have it. */
  task(name: string): TaskScores | undefined {
    return this.#tasks.get(name);
  }

  /** What `make` returns, called once for this key. */
  once<T>(make: () => T, ...key: readonly unknown[]): T {
    const name = JSON.stringify(key);
    if (!this.#values.has(name)) this.#values.set(name, make());
    return this.#values.get(name) as T;
  }

  /** What `make` returned, as long as the owner is asked for with the same key as the last time. */
  latest<T>(owner: object, key: readonly unknown[], make: () => T): T {
    const kept = this.#latest.get(owner);
    if (kept && key.every((part, i) => part === kept.key[i])) return kept.value as T;
    const value = make();
    this.#latest.set(owner, { key, value });
    return value;
  }
}

/** A function that calls `make` when it is first called, and returns the same value ever after. */
export function lazy<T>(make: () => T): () => T {
  let kept: { readonly value: T } | undefined;
  return () => {
    kept ??= { value: make() };
    return kept.value;
  };
}
