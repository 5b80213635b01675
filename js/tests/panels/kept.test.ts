// Switching rules and back keeps the number of each.

import { expect, it } from "vitest";
import { Kept } from "../../panels/kept";

const value = { rule: "value", normalize: null } as const;
const top = { rule: "top", normalize: null } as const;

it("a rule that was not used starts where rules start", () => {
  expect([new Kept().of(top), new Kept().of(value)]).toEqual([10, null]);
});

it("a rule has the number that it had last", () => {
  const kept = new Kept();
  kept.note({ ...value, threshold: 0.2 });
  kept.note({ ...value, threshold: 0.3 });
  kept.note({ ...top, threshold: 7 });
  expect([kept.of(value), kept.of(top)]).toEqual([0.3, 7]);
});

it("a value belongs to its scale, the number of heads to none", () => {
  const kept = new Kept();
  kept.note({ ...value, threshold: 0.3 });
  kept.note({ ...top, threshold: 7 });
  expect(kept.of({ rule: "value", normalize: "share" })).toBeNull();
  expect(kept.of({ rule: "top", normalize: "share" })).toBe(7);
  expect(kept.of(value)).toBe(0.3);
});

it("no threshold is not remembered", () => {
  const kept = new Kept();
  kept.note({ ...top, threshold: 7 });
  kept.note({ ...top, threshold: null });
  expect(kept.of(top)).toBe(10);
});

it("a value belongs to its method", () => {
  const kept = new Kept();
  kept.note({ ...value, method: "ablation", threshold: 0.3 });
  expect(kept.of({ ...value, method: "patterns" })).toBeNull();
  expect(kept.of({ ...value, method: "ablation" })).toBe(0.3);
});
