// What the lab says of its kernel: no more than the host knows and than answers show.

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { watchKernel } from "../../live/kernel";

const hostSignal = () => {
  const slots = new Set<() => void>();
  return {
    slots,
    connect: (slot: () => void) => slots.add(slot),
    disconnect: (slot: () => void) => slots.delete(slot),
  };
};

function host() {
  const kernel = {
    status: "idle",
    connectionStatus: "connected",
    isDisposed: false,
    statusChanged: hostSignal(),
    connectionStatusChanged: hostSignal(),
    disposed: hostSignal(),
  };
  const ended = new AbortController();
  const report = vi.fn();
  const watch = watchKernel({ kernel }, report, ended.signal);
  const become = (change: Partial<typeof kernel>): void => {
    Object.assign(kernel, change);
    for (const slot of kernel.statusChanged.slots) slot();
  };
  return { kernel, ended, report, watch, become };
}

describe("the watch of a kernel", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it.each(["restarting", "autorestarting", "dead"])("says gone for %s, for good", (status) => {
    const { watch, become, report } = host();
    become({ status });
    expect(watch.state).toBe("gone");
    become({ status: "idle" });
    watch.heard();
    expect(watch.state).toBe("gone");
    expect(report).toHaveBeenCalledTimes(1);
  });

  it("says busy, never gone, of a kernel that runs a cell and does not answer", () => {
    const { kernel, watch } = host();
    kernel.status = "busy";
    watch.expect();
    vi.advanceTimersByTime(60_000);
    expect(watch.state).toBe("busy");
    watch.heard();
    expect(watch.state).toBe("here");
    vi.advanceTimersByTime(60_000);
    expect(watch.state).toBe("here");
  });

  it("says silent where nothing is known, and takes it back with the next answer", () => {
    const watch = watchKernel(undefined, () => {}, new AbortController().signal);
    watch.expect();
    vi.advanceTimersByTime(5000);
    expect(watch.state).toBe("here");
    vi.advanceTimersByTime(10_000);
    expect(watch.state).toBe("silent");
    watch.heard();
    expect(watch.state).toBe("here");
  });

  it("says away while there is no connection", () => {
    const { watch, become } = host();
    become({ connectionStatus: "connecting" });
    expect(watch.state).toBe("away");
    become({ connectionStatus: "connected" });
    expect(watch.state).toBe("here");
  });

  it("leaves nothing behind", () => {
    const { kernel, ended, watch } = host();
    watch.expect();
    ended.abort();
    const signals = [kernel.statusChanged, kernel.connectionStatusChanged, kernel.disposed];
    expect(signals.map(({ slots }) => slots.size)).toEqual([0, 0, 0]);
    expect(vi.getTimerCount()).toBe(0);
  });
});
