// The factor that the Effect tab says, and what the slider makes of the selected heads.

import { describe, expect, it } from "vitest";
import { factorOf, withFactor } from "../../live/changed";
import type { ChangedHead } from "../../state";

const changed: ChangedHead[] = [
  [0, 1, 0.123],
  [1, 2, -2.5],
];

describe("the factor of the selected heads", () => {
  it("is that of the head selected last, 1 where it is as it was", () => {
    expect(factorOf(changed, [[1, 2]])).toBe(-2.5);
    expect(
      factorOf(changed, [
        [1, 2],
        [0, 1],
      ]),
    ).toBe(0.123);
    expect(factorOf(changed, [[5, 5]])).toBe(1);
    expect(factorOf(changed, [])).toBe(1);
  });

  it("is given to all of them", () => {
    expect(withFactor(changed, [[1, 2]], 3)).toEqual([
      [0, 1, 0.123],
      [1, 2, 3],
    ]);
    expect(withFactor(changed, [[1, 2]], 1)).toEqual([[0, 1, 0.123]]);
  });
});
