// The line that runs a method: which, on what, how much of it; run, stop, and how far it is. Its
// height and what stands where never change; what went wrong is said below the maps.

import { all, button, keepKeys, make, setText } from "../panels/dom";
import { popup } from "../panels/popup";
import type { Panel, Shows } from "../state";
import { isOut } from "./kernel";
import type { Lab, RunState } from "./lab";
import { optionField } from "./option";
import { pastRuns } from "./past";
import { isRunning, kernelText, runText, troubles, troubleText } from "./run_text";

/** The methods to choose from, and how they follow the lab. */
function methodChoice(lab: Lab): { el: HTMLSelectElement; follow(): void } {
  const el = make("select", "select hw-run-method");
  el.setAttribute("aria-label", "Method");
  el.addEventListener("change", () => lab.set({ method: el.value, options: {} }));
  keepKeys(el);
  let offered: readonly unknown[] = [];
  const follow = (): void => {
    const { methods } = lab.state._offer;
    if (offered !== methods) {
      const options = methods.map(
        ({ name, why_not }) => new Option(why_not ? `${name} (not here)` : name, name),
      );
      el.replaceChildren(...options);
      offered = methods;
    }
    el.value = lab.state.method;
    const chosen = methods.find(({ name }) => name === lab.state.method);
    el.title = chosen?.why_not || chosen?.about || "How heads are scored";
  };
  return { el, follow };
}

/** A menu of the line, whose button's text may change and whose width does not. */
function menu(name: string, fill: Parameters<typeof popup>[2]) {
  const el = make("details", `menu hw-run-menu hw-run-${name}`);
  const dispose = popup(el, "", fill);
  const label = el.querySelector("summary")!;
  const say = (text: string, title: string): void => {
    setText(label, text);
    label.title = title;
  };
  return { el, dispose, say };
}

/** What is scored: a box to tick for each task; one at least always is. */
const tasks =
  (lab: Lab) =>
  (box: HTMLElement): (() => void) => {
    const { tasks } = lab.state._offer;
    const rows = tasks.map(([name, count]) => {
      const input = make("input", "check");
      input.type = "checkbox";
      input.addEventListener("change", () => {
        const { asked } = lab.state;
        const next = input.checked ? [...asked, name] : asked.filter((other) => other !== name);
        if (next.length)
          lab.set({ asked: tasks.map(([task]) => task).filter((task) => next.includes(task)) });
        follow();
      });
      const label = make("span", "run-task-name", name);
      label.title = name;
      const prompts = make("span", "option-note", `${count} prompts`);
      return { name, input, el: make("label", "run-task", input, label, prompts) };
    });
    const follow = (): void => {
      const { asked } = lab.state;
      for (const { name, input } of rows) {
        input.checked = asked.includes(name);
        input.disabled = input.checked && asked.length === 1; // one at least is scored
      }
    };
    box.append(...rows.map(({ el }) => el));
    follow();
    return lab.subscribe((changed) => {
      if (changed.has("asked")) follow();
    });
  };

/** What the chosen method does, and its options. */
const options =
  (lab: Lab) =>
  (box: HTMLElement): (() => void) => {
    let fields: readonly { follow(): void }[] = [];
    let asks: string | null = null; // the method whose options are asked for
    const follow = (): void => {
      const { method, _offer: offer } = lab.state;
      if (asks !== method) {
        asks = method;
        const chosen = offer.methods.find(({ name }) => name === method);
        const made = (chosen?.options ?? []).map((option) => optionField(lab, option));
        const none = made.length ? [] : [make("p", "option-note", `${method} has no options.`)];
        const about = make("p", "option-note", chosen?.about ?? "");
        box.replaceChildren(about, ...made.map(({ el }) => el), ...none);
        fields = made;
      }
      for (const field of fields) field.follow();
    };
    follow();
    return lab.subscribe((changed) => {
      if (changed.has("method") || changed.has("options")) follow();
    });
  };

/** How many prompts of each task. */
function promptCount(lab: Lab): { el: HTMLElement; input: HTMLInputElement; follow(): void } {
  const input = make("input", "number");
  input.type = "number";
  input.min = "1";
  input.placeholder = "all";
  input.setAttribute("aria-label", "Prompts of each task; empty is all");
  keepKeys(input);
  const follow = (): void => {
    if (!input.matches(":focus"))
      input.value = lab.state.prompts === null ? "" : String(lab.state.prompts);
  };
  input.addEventListener("change", () => {
    const number = Math.floor(input.valueAsNumber);
    if (input.value === "" || number >= 1) lab.set({ prompts: number >= 1 ? number : null });
    input.blur(); // what is no number of prompts goes back to what it was
    follow();
  });
  const el = make("label", "choice", make("span", "choice-name", "Prompts"), input);
  return { el, input, follow };
}

/** Whether the run scores the model with the heads changed as they are. */
function heed(lab: Lab): { el: HTMLElement; input: HTMLInputElement; follow(): void } {
  const input = make("input", "check");
  input.type = "checkbox";
  input.addEventListener("change", () => lab.set({ heed_gates: input.checked }));
  const el = make(
    "label",
    "choice hw-run-heed",
    input,
    make("span", "choice-name", "with heads changed"),
  );
  el.title =
    "Score the model with its heads changed as they are; otherwise a run leaves every head on";
  const follow = (): void => {
    input.checked = lab.state.heed_gates;
    const isIdle = !lab.state._scaled.length;
    el.classList.toggle("hw-run-away", isIdle); // its room stays
    input.disabled = isIdle;
  };
  return { el, input, follow };
}

export const run =
  (lab: Lab): Panel<Shows<"spoken">> =>
  (el, source) => {
    let stopped = false; // Stop was pressed; a kernel that runs a cell hears of it later
    const go = button("go", "Run", "Score the heads", () => {
      stopped = isRunning(lab.state._state);
      lab.ask(stopped ? "stop" : "run");
      draw();
    });
    const [method, prompts, changed] = [methodChoice(lab), promptCount(lab), heed(lab)];
    const [score, more] = [menu("score", tasks(lab)), menu("options", options(lab))];
    const past = pastRuns(lab);
    more.el.classList.add("hw-more");
    const bar = make("progress", "progress");
    bar.max = 1;
    bar.setAttribute("aria-label", "How far the run is");
    const text = make("span", "run-text");
    const far = make("div", "run-far", text, bar);
    const parts = [method.el, score.el, prompts.el, more.el, changed.el, far, past.el];
    el.append(make("div", "run-row", go, ...parts));
    let spoken: RunState["state"] = lab.state._state.state; // what was last read aloud

    const draw = (): void => {
      const { state } = lab;
      const { asked, _state: now } = state;
      const [busy, out] = [isRunning(now), isOut(state.kernel)];
      for (const part of [method, prompts, changed]) part.follow();
      const which = asked.length === 1 ? asked[0] : `${asked.length} tasks`;
      score.say(`Score: ${which}`, `The next run scores ${asked.join(", ")}`);
      const set = Object.keys(state.options).length;
      more.say(set ? `Options (${set})` : "Options", "The method's options");
      more.el.classList.toggle("hw-unusual", set > 0);
      const whyNot = whyNotOf(lab);
      stopped &&= busy && now.what !== "starting"; // another run has begun
      const stopping = stopped || now.state === "stopping";
      setText(go, busy && !out ? (stopping ? "Stopping…" : "Stop") : "Run");
      go.classList.toggle("hw-busy", busy && !out);
      go.disabled = out || stopping || (!busy && !!whyNot);
      method.el.disabled = prompts.input.disabled = out;
      if (out) changed.input.disabled = true;
      past.follow(out);
      // Of a run whose kernel is gone nothing is under way any more.
      bar.classList.toggle("hw-run-away", !busy || out);
      if (now.done && now.total) bar.value = Math.min(1, now.done / now.total);
      else bar.removeAttribute("value");
      const words = kernelText(state) ?? runText(state);
      const wrong = troubles(state, busy ? "" : whyNot);
      setText(text, (wrong && troubleText(state, whyNot)) || words.short);
      text.title = wrong || words.long;
      text.classList.toggle("hw-wrong", !!wrong);
      if (now.state === spoken) return;
      spoken = now.state; // read aloud only when a run begins or ends, not as it goes on
      if (now.state === "running") source.show({ spoken: `${now.method} is running` });
      else if (now.state !== "failed" && now.state !== "stopping")
        source.show({ spoken: words.long });
    };
    draw();
    const stop = lab.subscribe((names) => {
      if (WATCHED.some((name) => names.has(name))) draw();
    });
    return all(stop, score.dispose, more.dispose, past.dispose);
  };

/** What went wrong, as sentences below the maps, which stay where they are when it is said. */
export const runTroubles =
  (lab: Lab): Panel<unknown> =>
  (el) => {
    const message = make("div", "error");
    message.setAttribute("role", "alert");
    el.append(message);
    const draw = (): void => {
      const { state } = lab;
      const whyNot = isRunning(state._state) ? "" : whyNotOf(lab);
      const wrong = troubles(state, whyNot);
      setText(message, wrong);
      message.hidden = !wrong;
    };
    draw();
    return lab.subscribe((names) => {
      if (WATCHED.some((name) => names.has(name))) draw();
    });
  };

/** Why the chosen method cannot score the chosen tasks; empty where it can. */
const whyNotOf = ({ state: { _offer: offer, method } }: Lab): string =>
  offer.methods.find(({ name }) => name === method)?.why_not ?? "";

const WATCHED = [
  ...(["method", "options", "asked", "prompts", "heed_gates", "_scaled"] as const),
  ...(["_offer", "_state", "_trouble", "_past", "kernel"] as const),
] as const;
