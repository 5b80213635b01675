// One rank of a head in a task, whatever is shown of it. Python reads the same golden cases.

import { describe, expect, it } from "vitest";
import golden from "../../../tests/golden/rank.json";
import { csv } from "../../display/export";
import { DEFAULTS, type Settings } from "../../display/settings";
import { Memo } from "../../scores/memo";
import { order, rankingValues, rankName, ranks } from "../../scores/rank";
import { floats, scoresOf, task } from "../fixtures";

interface Case {
  readonly name: string;
  readonly ranked_by: "mean" | "size";
  readonly means: readonly (number | null)[];
  readonly ranks: readonly number[];
}

describe("a rank", () => {
  it.each(golden as Case[])("is that of Python: $name", (one) => {
    const means = floats(one.means);
    expect([...order(rankingValues(means, one.ranked_by))]).toEqual(one.ranks);
  });

  it("goes by the mean where the header does not say", () => {
    const scores = scoresOf([task("a", [[1, -3, 2]])], [0], true);
    expect([...ranks(new Memo(scores), scores.tasks[0]!)]).toEqual([2, 3, 1]);
    const memo = new Memo({ ...scores, ranked_by: "size" });
    expect([...ranks(memo, scores.tasks[0]!)]).toEqual([3, 1, 2]);
  });

  it("is named by what it goes by, where a strong head may hurt", () => {
    expect(rankName({ signed: true })).toBe("rank (1: highest mean)");
    expect(rankName({ signed: true, ranked_by: "size" })).toBe("rank (1: largest size)");
    expect(rankName({ signed: false })).toBe("rank");
  });

  it("is the same in the table under any sign, reduction and threshold", () => {
    const runs = [
      [3, -9, 1],
      [3, -9, 4],
      [0, 8, 1],
    ];
    const scores = scoresOf([task("a", runs)], [7], true);
    const inTable = (settings: Partial<Settings>): string[] => {
      const selected = [0, 1, 2].map((head) => [7, head] as const);
      const asked = { ...DEFAULTS, tasks: ["a"], ...settings };
      const rows = csv({ ...asked, scores, memo: new Memo(scores), selected })
        .trim()
        .split("\n");
      return rows.slice(1).map((row) => row.split(",").at(-2)!);
    };
    const other: Partial<Settings>[] = [
      { sign: "hurts" },
      { sign: "helps", threshold: 1 },
      { reduction: "median" },
      { normalize: "share" },
      { view: "agreement", agreement: 0.5 },
    ];
    for (const settings of [{}, ...other]) expect(inTable(settings)).toEqual(["1", "3", "1"]);
  });
});
