// The one cache: values are made once, or kept until asked for with another key.

import { describe, expect, it, vi } from "vitest";
import { lazy, Memo } from "../../scores/memo";
import { scoresOf, task } from "../fixtures";

const memo = () => new Memo(scoresOf([task("a", [[1, 2, 3, 4]])], [0, 1]));

describe("a memo", () => {
  it("makes a value once for a key, null among them", () => {
    const [cache, make] = [memo(), vi.fn(() => null)];
    cache.once(make, "x", 1);
    cache.once(make, "x", 1);
    expect(make).toHaveBeenCalledOnce();
    cache.once(make, "x", "1");
    expect(make).toHaveBeenCalledTimes(2);
  });
  it("keeps of an owner what was asked for last", () => {
    const [cache, owner, make] = [memo(), {}, vi.fn(() => ({}))];
    const first = cache.latest(owner, [1, "up"], make);
    expect(cache.latest(owner, [1, "up"], make)).toBe(first);
    expect(cache.latest({}, [1, "up"], make)).not.toBe(first);
    expect(cache.latest(owner, [2, "up"], make)).not.toBe(first);
    expect(cache.latest(owner, [1, "up"], make)).not.toBe(first);
    expect(make).toHaveBeenCalledTimes(4);
  });
  it("knows its tasks by name", () => {
    expect(memo().task("a")?.name).toBe("a");
    expect(memo().task("b")).toBeUndefined();
    expect(memo().cells).toBe(4);
  });
});

describe("a lazy value", () => {
  it("is made when it is first asked for, and once", () => {
    const make = vi.fn(() => undefined);
    const value = lazy(make);
    expect(make).not.toHaveBeenCalled();
    value();
    value();
    expect(make).toHaveBeenCalledOnce();
  });
});
