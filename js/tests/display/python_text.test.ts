// "Copy as Python" gives the call that shows the same, with what differs from the usual only.

import { describe, expect, it } from "vitest";
import { pythonText } from "../../display/python_text";
import { DEFAULTS } from "../../display/settings";
import { scoresOf, task } from "../fixtures";

const scores = scoresOf([task("Math", [[0, 1, 2, 3]]), task('a "b"', [[0, 1, 2, 3]])], [2, 5]);
const usual = { ...DEFAULTS, tasks: ["Math", 'a "b"'], selected: [] };
const lab = {
  method: "gradient",
  options: {},
  asked: ["Math"],
  prompts: 20,
  prompt: "",
  target: null,
  heed_gates: false,
  scaled: [],
  tasks: ["Math"],
};

describe("the text of Python", () => {
  it("names no setting that is as in a new explorer", () => {
    expect(pythonText(usual, scores)).toBe("import headwidget as hw\n\nhw.explore(scores)\n");
  });

  it("names what differs, as Python writes it", () => {
    const state = { ...usual, view: "agreement" as const, threshold: 0.1, selected: [[5, 1]] };
    expect(pythonText(state as never, scores)).toBe(
      'import headwidget as hw\n\nhw.explore(scores, view="agreement", threshold=0.1, selected=[(5, 1)])\n',
    );
    const more = { ...state, tasks: ['a "b"'], cap: "99%", colormap: "turbo" as const };
    expect(pythonText(more as never, scores)).toContain(
      'hw.explore(\n    scores,\n    view="agreement",\n    tasks=["a \\"b\\""],\n',
    );
  });

  it("knows the threshold that a rule starts with, and what the scores ask for", () => {
    const top = { ...usual, rule: "top" as const, threshold: 10 };
    expect(pythonText(top, scores)).toContain('(scores, rule="top")');
    expect(pythonText({ ...top, threshold: null }, scores)).toContain(
      '(scores, threshold=None, rule="top")',
    );
    const probe = { ...scores, display: { normalize: "share" as const } };
    expect(pythonText(usual, probe)).toContain("(scores, normalize=None)");
    expect(pythonText({ ...usual, normalize: "share" }, probe)).toContain("explore(scores)");
  });

  it("writes a lab with what it is asked for and its gates", () => {
    const asked = { ...lab, options: { abs: true, replace: null }, prompt: "2 + 2 =\n" };
    expect(pythonText(usual, scores, { ...asked, scaled: [[5, 1, 0]] })).toBe(
      [
        "import headwidget as hw",
        "",
        "lab = hw.live(",
        "    model,",
        "    tasks,",
        '    method="gradient",',
        "    prompts=20,",
        '    options={"abs": True, "replace": None},',
        '    prompt="2 + 2 =\\n",',
        ")",
        "gates = lab.gates.copy()  # a row a layer, a column a head",
        "gates[1, 1] = 0",
        "lab.gates = gates",
        "lab.run()",
        "lab",
        "",
      ].join("\n"),
    );
    expect(pythonText(usual, scores, lab)).toContain(
      'lab = hw.live(model, tasks, method="gradient", prompts=20)\nlab.run()\nlab\n',
    );
  });

  it("writes what a new lab would not have: tasks put away, settings that the method asks for", () => {
    const [first] = scores.tasks;
    const asks = { ...scores, display: { normalize: "share" as const, threshold: 0.15 } };
    const shown = { ...usual, tasks: [first!.name], normalize: "share" as const, threshold: 0.15 };
    const text = pythonText(shown, asks, { ...lab, heed_gates: true });
    expect(text).toContain("threshold=0.15");
    expect(text).toContain('normalize="share"');
    expect(text).toContain("heed_gates=True");
    expect(text).not.toMatch(/\(.*tasks=\[/s);
    expect(text).toContain(`lab.run()\nlab.tasks = [${JSON.stringify(first!.name)}]\nlab\n`);
  });

  it("opens a file where it is copied from a page", () => {
    const text = pythonText(usual, scores, null, 'hw.open("scores.safetensors")');
    expect(text).toContain('hw.explore(hw.open("scores.safetensors"))');
  });
});
