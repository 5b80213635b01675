// A chip for every task: click to show or hide, drag (or Alt + arrows) to reorder; and a slider that steps through them one by one.

import type { Panel, Store } from "../store";
import { button, focused, keepKeys, make, setText } from "./dom";

const FAR = 5; // CSS pixels a chip is moved before that is a drag

export const chips: Panel = (el, store) => {
  const list = make("div", "chip-list");
  list.setAttribute("role", "group");
  list.setAttribute("aria-label", "Tasks shown");
  const alone = button(
    "chip-alone",
    "One at a time",
    "Step through the tasks, one large map each",
    () => {
      const { task, tasks, scores } = store.state;
      const first = tasks[0] ?? scores?.tasks[0]?.name ?? null;
      store.sync({ task: task === null ? first : null });
    },
  );
  const slider = make("input", "slider");
  slider.type = "range";
  slider.min = "0";
  slider.setAttribute("aria-label", "Task");
  keepKeys(slider);
  const name = make("output", "solo-name");
  const step = make("div", "solo", slider, name);
  el.append(list, alone, step);
  let order: string[] = []; // of the chips, hidden tasks among them
  slider.addEventListener("input", () =>
    store.sync({ task: stepped(store)[slider.valueAsNumber] ?? null }),
  );

  const reorder = (names: string[]): void => {
    order = names;
    store.sync({ tasks: names.filter((one) => store.state.tasks.includes(one)) });
  };
  const moved = (task: string, to: number): string[] => {
    const rest = order.filter((one) => one !== task);
    rest.splice(Math.max(0, Math.min(rest.length, to)), 0, task);
    return rest;
  };
  const chip = (task: string): HTMLElement => {
    let start: { x: number; y: number } | null = null;
    let dragged = false;
    const toggle = (): void => {
      const { tasks } = store.state;
      if (dragged) return;
      const next = order.filter((one) =>
        one === task ? !tasks.includes(task) : tasks.includes(one),
      );
      store.sync({ tasks: next });
    };
    const el = button(
      "chip",
      task,
      `Show or hide ${task}; drag or Alt + arrow keys to move it`,
      toggle,
    );
    el.dataset.task = task;
    el.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      [start, dragged] = [{ x: event.clientX, y: event.clientY }, false];
      el.setPointerCapture(event.pointerId);
    });
    el.addEventListener("pointermove", (event) => {
      if (!start) return;
      if (Math.hypot(event.clientX - start.x, event.clientY - start.y) > FAR) dragged = true;
      if (!dragged) return;
      el.classList.add("hw-dragged");
      const over = Array.from(list.children).find((other) => {
        const box = other.getBoundingClientRect();
        return (
          event.clientX > box.left &&
          event.clientX < box.right &&
          event.clientY > box.top &&
          event.clientY < box.bottom
        );
      }) as HTMLElement | undefined;
      if (!over || over === el) return;
      // Only where the chip in hand would come to lie under the pointer: else two of unlike width change places for ever.
      const [box, mine] = [over.getBoundingClientRect(), el.getBoundingClientRect()];
      const sameLine = Math.abs(box.top - mine.top) < box.height / 2;
      const past =
        mine.left < box.left
          ? event.clientX > box.right - mine.width
          : event.clientX < box.left + mine.width;
      if (!sameLine || past) reorder(moved(task, order.indexOf(over.dataset.task!)));
    });
    const drop = (): void => {
      start = null;
      el.classList.remove("hw-dragged");
    };
    el.addEventListener("pointerup", drop);
    el.addEventListener("pointercancel", drop);
    el.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (event.key !== "Enter" && event.key !== " " && !by) return;
      event.stopPropagation();
      dragged = false;
      if (!by || !event.altKey) return;
      event.preventDefault();
      reorder(moved(task, order.indexOf(task) + by));
      store.show({ spoken: `${task} is now number ${order.indexOf(task) + 1}` });
    });
    return el;
  };

  const draw = (): void => {
    const { scores, tasks, task } = store.state;
    const names = scores?.tasks.map((one) => one.name) ?? [];
    el.hidden = names.length < 2;
    if (el.hidden) return;
    if (
      order.length !== names.length ||
      order.filter((one) => tasks.includes(one)).join("\n") !== tasks.join("\n")
    ) {
      order = [
        ...tasks.filter((one) => names.includes(one)),
        ...names.filter((one) => !tasks.includes(one)),
      ];
    }
    const have = new Map(
      Array.from(list.children).map((one) => [(one as HTMLElement).dataset.task!, one]),
    );
    const wanted = order.map((one) => (have.get(one) as HTMLElement | undefined) ?? chip(one));
    if (wanted.length !== list.children.length || wanted.some((one, i) => list.children[i] !== one))
      place(list, wanted);
    for (const one of wanted)
      one.setAttribute("aria-pressed", String(tasks.includes(one.dataset.task!)));
    alone.setAttribute("aria-pressed", String(task !== null));
    alone.hidden = store.state.view === "categories";
    step.hidden = task === null || alone.hidden;
    const steps = stepped(store);
    slider.max = String(steps.length - 1);
    slider.value = String(Math.max(0, steps.indexOf(task ?? "")));
    slider.setAttribute("aria-valuetext", task ?? "");
    setText(name, task === null ? "" : `${task} (${steps.indexOf(task) + 1} of ${steps.length})`);
  };
  draw();
  return store.subscribe((changed) => {
    if (changed.has("scores") || changed.has("tasks") || changed.has("task") || changed.has("view"))
      draw();
  });
};

/** Put the chips in order without taking the focus or the pointer from the one in hand. */
function place(list: HTMLElement, wanted: HTMLElement[]): void {
  for (const old of Array.from(list.children))
    if (!wanted.includes(old as HTMLElement)) old.remove();
  const active = focused(list);
  const held = wanted.findIndex((one) => one === active || one.classList.contains("hw-dragged"));
  wanted.forEach((one, i) => {
    if (i === held) return;
    if (i < held) list.insertBefore(one, wanted[held]!);
    else list.append(one);
  });
  if (held >= 0 && !wanted[held]!.isConnected)
    list.insertBefore(wanted[held]!, wanted[held + 1] ?? null);
}

/** The tasks the slider steps through: those shown, or all when the one in view is hidden. */
function stepped({ state: { tasks, task, scores } }: Store): readonly string[] {
  return task === null || tasks.includes(task)
    ? tasks
    : (scores?.tasks.map((one) => one.name) ?? []);
}
