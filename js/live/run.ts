// The line that runs a method: which, on what, how much of it; run, stop, and how far it is.

import { button, choice, keepKeys, make, setText } from "../panels/dom";
import type { Panel, Shows } from "../state";
import type { Lab, Option, RunState } from "./lab";

/** A part of the form, and how it follows the lab: it is made once, so that it keeps the focus. */
interface Field {
  readonly el: HTMLElement;
  follow(): void;
}

export const run =
  (lab: Lab): Panel<Shows<"spoken">> =>
  (el, source) => {
    const { _offer: offer } = lab.state;
    const method = choice(
      "Method",
      offer.methods.map(
        ({ name, why_not }) => [name, why_not ? `${name} (not here)` : name] as const,
      ),
      (name) => lab.set({ method: name, options: {} }),
    );
    const options = make("span", "run-options");
    const tasks = make("span", "run-tasks");
    tasks.setAttribute("role", "group");
    tasks.setAttribute("aria-label", "Tasks to score");
    const prompts = make("input", "number");
    prompts.type = "number";
    prompts.min = "1";
    prompts.placeholder = "all";
    prompts.setAttribute("aria-label", "Prompts of each task; empty is all");
    keepKeys(prompts);
    prompts.addEventListener("change", () => {
      const number = Math.floor(prompts.valueAsNumber);
      lab.set({ prompts: number >= 1 ? number : null });
      draw();
    });
    const go = button("go", "Run", "Score the heads", () =>
      lab.ask(running(lab.state._state) ? "stop" : "run"),
    );
    const bar = make("progress", "progress");
    bar.max = 1;
    bar.setAttribute("aria-label", "How far the run is");
    const text = make("span", "run-text");
    const message = make("div", "error");
    message.setAttribute("role", "alert");
    const howMany = make("label", "choice", make("span", "choice-name", "Prompts"), prompts);
    el.append(make("div", "run-line", method.el, options, tasks, howMany, go, bar, text), message);
    const chips = offer.tasks.map(([name, count]) => task(lab, name, count));
    tasks.append(...chips.map((chip) => chip.el));
    let fields: readonly Field[] = [];
    let asks: string | null = null; // the method whose options are asked for
    let spoken: RunState["state"] = lab.state._state.state; // what was last read aloud

    const draw = (): void => {
      const { state } = lab;
      const busy = running(state._state);
      method.select.value = state.method;
      if (!prompts.matches(":focus"))
        prompts.value = state.prompts === null ? "" : String(state.prompts);
      const chosen = offer.methods.find(({ name }) => name === state.method);
      method.select.title = chosen?.why_not || chosen?.about || "How heads are scored";
      if (asks !== state.method) {
        fields = (chosen?.options ?? []).map((option) => field(lab, option));
        options.replaceChildren(...fields.map((field) => field.el));
        asks = state.method;
      }
      for (const part of [...fields, ...chips]) part.follow();
      setText(go, state._state.state === "stopping" ? "Stopping…" : busy ? "Stop" : "Run");
      go.classList.toggle("hw-busy", busy);
      go.disabled = state._state.state === "stopping" || (!busy && !!chosen?.why_not);
      progress();
    };
    const progress = (): void => {
      const { _state: now, _trouble: trouble } = lab.state;
      const busy = running(now);
      bar.hidden = !busy;
      if (now.done) bar.value = Math.min(1, now.done / (now.total || 1));
      else bar.removeAttribute("value");
      setText(text, runText(now));
      const wrong = [now.state === "failed" ? failure(now) : "", trouble].filter(Boolean).join(" ");
      setText(message, wrong);
      message.hidden = !wrong;
      if (now.state === spoken) return;
      spoken = now.state; // read aloud only when a run begins or ends, not as it goes on
      if (now.state === "running") source.show({ spoken: `${now.method} is running` });
      else if (now.state !== "failed" && now.state !== "stopping")
        source.show({ spoken: runText(now) });
    };
    draw();
    return lab.subscribe((changed) => {
      const busy = running(lab.state._state);
      const asked = ["method", "options", "asked", "prompts"].some((name) =>
        changed.has(name as never),
      );
      if (
        asked ||
        busy !== go.classList.contains("hw-busy") ||
        lab.state._state.state === "stopping" ||
        go.disabled
      )
        draw();
      else if (changed.has("_state") || changed.has("_trouble")) progress();
    });
  };

const running = ({ state }: RunState): boolean => state === "running" || state === "stopping";

function runText(now: RunState): string {
  const seconds = (number: number): string =>
    number < 90 ? `${Math.round(number)} s` : `${Math.round(number / 60)} min`;
  if (running(now)) {
    const far = now.total ? `${Math.floor(now.done ?? 0)} of ${now.total} ${now.unit}` : "";
    const left = now.left && Number.isFinite(now.left) ? `${seconds(now.left)} left` : "";
    return [now.method, now.what, far, now.detail, left].filter(Boolean).join(" · ");
  }
  const halved = now.halved ? `, memory ran out: batches of ${now.halved}` : "";
  if (now.state === "done") return `${now.method}: done in ${seconds(now.seconds ?? 0)}${halved}`;
  if (now.state === "stopped") {
    return now.kept
      ? `${now.method}: stopped, ${now.kept} runs kept`
      : `${now.method}: stopped before any run was done`;
  }
  return now.state === "idle" ? "Nothing is scored yet." : "";
}

const failure = ({ message, kept }: RunState): string =>
  [message, kept ? `${kept} runs that were done are kept.` : ""].filter(Boolean).join(" ");

/** An option of the method, with its help as the title. */
function field(lab: Lab, option: Option): Field {
  const asked = control(lab, option);
  asked.el.title = option.help;
  return asked;
}

/** An option of the method, as a form asks for it. */
function control(lab: Lab, { name, kind, default: usual, choices }: Option): Field {
  const now = (): unknown => lab.state.options[name] ?? usual;
  const put = (value: unknown): void => {
    const { [name]: _, ...others } = lab.state.options;
    lab.set({ options: value === null || value === usual ? others : { ...others, [name]: value } });
  };
  if (kind === "choice") {
    const { el, select } = choice(
      name,
      choices!.map((name) => [name, name] as const),
      put,
    );
    const follow = (): void => {
      select.value = String(now());
    };
    return { el, follow };
  }
  const input = make("input", kind === "bool" ? "check" : "number");
  keepKeys(input);
  const el = make("label", "choice", make("span", "choice-name", name), input);
  if (kind === "bool") {
    input.type = "checkbox";
    input.addEventListener("change", () => put(input.checked));
    const follow = (): void => {
      input.checked = now() === true;
    };
    return { el, follow };
  }
  input.type = "number";
  input.step = kind === "int" ? "1" : "any";
  input.placeholder = "usual";
  input.addEventListener("change", () =>
    put(Number.isNaN(input.valueAsNumber) ? null : input.valueAsNumber),
  );
  const follow = (): void => {
    const value = now() ?? null;
    if (!input.matches(":focus")) input.value = value === null ? "" : String(value);
  };
  return { el, follow };
}

/** A task that is scored or not; one at least always is. */
function task(lab: Lab, name: string, count: number): Field {
  const el = button("chip", name, `${count} prompts`, () => {
    const { asked } = lab.state;
    const next = asked.includes(name) ? asked.filter((other) => other !== name) : [...asked, name];
    if (next.length)
      lab.set({
        asked: lab.state._offer.tasks.map(([task]) => task).filter((task) => next.includes(task)),
      });
  });
  return {
    el,
    follow: () => el.setAttribute("aria-pressed", String(lab.state.asked.includes(name))),
  };
}
