// An option of a method as a form asks for it, with its one-sentence help below.

import { choice, keepKeys, make } from "../panels/dom";
import type { Lab, Option } from "./lab";

/** A part of a form, made once so that it keeps the focus, and how it follows the lab. */
interface Field {
  readonly el: HTMLElement;
  follow(): void;
}

export function optionField(lab: Lab, option: Option): Field {
  const { el, follow } = control(lab, option);
  el.title = `In Python: options={"${option.name}": …}`;
  const help = make("p", "option-note", option.help);
  return { el: make("div", "run-option", el, help), follow };
}

function control(lab: Lab, { name, label, kind, default: usual, choices, hint }: Option): Field {
  const now = (): unknown => lab.state.options[name] ?? usual;
  const put = (value: unknown): void => {
    const { [name]: _, ...others } = lab.state.options;
    lab.set({ options: value === null || value === usual ? others : { ...others, [name]: value } });
  };
  if (kind === "choice") {
    const values = choices!.map((value) => [value, value] as const);
    const { el, select } = choice(label, values, put);
    const follow = (): void => {
      select.value = String(now());
    };
    return { el, follow };
  }
  const input = make("input", kind === "bool" ? "check" : "number");
  keepKeys(input);
  const el = make("label", "choice", make("span", "choice-name", label), input);
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
  input.placeholder = hint || "auto";
  input.addEventListener("change", () =>
    put(Number.isNaN(input.valueAsNumber) ? null : input.valueAsNumber),
  );
  const follow = (): void => {
    const value = now() ?? null;
    if (!input.matches(":focus")) input.value = value === null ? "" : String(value);
  };
  return { el, follow };
}
