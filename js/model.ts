// The part of the widget model that the front end uses, and a stand-in for pages without Jupyter.

export interface WidgetModel {
  get(key: string): unknown;
  set(key: string, value: unknown): void;
  save_changes(): void;
  on(event: string, callback: () => void): void;
  off(event: string, callback: () => void): void;
  /** Tell the kernel something that is no trait; a page without one has none. */
  send?(content: unknown): void;
  /** The host's own manager of widgets; which host, and so what it has, is not known. */
  readonly widget_manager?: unknown;
}

/** A model that is not connected to a kernel. */
export function standIn(initial: Record<string, unknown>): WidgetModel {
  const state = { ...initial };
  const listeners = new Map<string, Set<() => void>>();
  return {
    get: (key) => state[key],
    set(key, value) {
      if (Object.is(state[key], value)) return;
      state[key] = value;
      for (const callback of listeners.get(`change:${key}`) ?? []) callback();
    },
    save_changes() {},
    on(event, callback) {
      listeners.set(event, (listeners.get(event) ?? new Set()).add(callback));
    },
    off(event, callback) {
      listeners.get(event)?.delete(callback);
    },
  };
}
