// Past runs in a line each, and the Python that compares one with what is shown.

import { describe, expect, it } from "vitest";
import type { LabState, PastRun } from "../../live/lab";
import { comparison, pastText } from "../../live/past_text";
import { runText } from "../../live/run_text";

const run: PastRun = {
  ...{ method: "gradient", tasks: ["Math", "Syntax"], prompts: 12, partial: false },
  ...{ heads: null, at: "17:05", shown: false },
};
const shown = { ...run, shown: true };
const call = (words: string) => `import headwidget as hw\n\nhw.compare(${words})\n`;

describe("a past run", () => {
  it("is told in one line", () => {
    expect(pastText(run)).toBe("gradient · Math, Syntax · 12 prompts · 17:05");
    const other = { ...run, tasks: ["a", "b", "c"], prompts: 1, partial: true, heads: 1 };
    expect(pastText(other)).toBe(
      "gradient · 3 tasks · 1 prompt · stopped · 1 head changed · 17:05",
    );
  });

  it("is compared with the one that is shown, by their places in the lab's history", () => {
    const runs = [run, { ...shown, method: "ablation" }, run];
    expect(comparison(runs, 0)).toBe(call("lab.history[1], lab.history[0]"));
    expect(comparison(runs, 2)).toBe(call("lab.history[1], lab.history[2]"));
  });

  it("of the same method is named by what tells it apart", () => {
    const heads = [{ ...run, heads: 3 }, shown];
    expect(comparison(heads, 0)).toContain('names=["all heads on", "3 heads changed"])');
    const times = [{ ...run, at: "17:09" }, shown];
    expect(comparison(times, 0)).toContain('names=["17:05", "17:09"])');
    expect(comparison([run, shown], 0)).toBe(call("lab.history[1], lab.history[0]"));
  });

  it("is not compared with itself, with nothing, or where no task is in both", () => {
    expect(comparison([shown, run], 0)).toBe(null);
    expect(comparison([run, run], 0)).toBe(null);
    expect(comparison([shown, { ...run, tasks: ["Other"] }], 1)).toBe(null);
  });
});

describe("the line of a run", () => {
  const said = (state: Partial<LabState>) =>
    runText({
      ...{ _scaled: [], _past: [shown], kernel: "here", method: "gradient" },
      _state: { state: "done", method: "gradient", seconds: 56 },
      ...state,
    });
  const changed = [[13, 4, 0]] as const;

  it("says how far a run is, and in the title of what", () => {
    const far = { done: 2.5, total: 16, unit: "prompts", left: 3, method: "gradient" };
    expect(said({ _state: { state: "running", what: "Knowledge Recall", ...far } })).toEqual({
      short: "Knowledge Recall 2 of 16 · 3 s left",
      long: "gradient · Knowledge Recall · 2 of 16 prompts · 3 s left",
    });
    expect(said({ _state: { state: "running", what: "checking the model" } }).short).toBe(
      "checking the model",
    );
  });
  it("says that the maps are of another method than the one chosen", () => {
    expect(said({ method: "ablation" }).short).toBe("the maps show gradient");
  });
  it("says while heads are changed whether the scores shown know of it, in a few words", () => {
    expect(said({})).toEqual({ short: "done in 56 s", long: "gradient: done in 56 s" });
    expect(said({ _scaled: changed }).short).toBe("done in 56 s · all heads on");
    const heeded = said({ _scaled: changed, _past: [run, { ...shown, heads: 3 }] });
    expect(heeded.short).toBe("done in 56 s · 3 heads changed");
    expect(heeded.short.length).toBeLessThan(36); // letters beside the switch at 968 px
  });
});
