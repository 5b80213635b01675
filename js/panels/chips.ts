// A chip for every task: click to show or hide, drag (or Alt + arrows) to reorder. Where one task is
// shown alone, buttons and a slider that step through the tasks stand in their place.

import { viewOf } from "../display/views";
import type { Panel, Reads, Shows, State, Syncs } from "../state";
import { button, focused, keepKeys, make, setText } from "./dom";

const FAR = 5; // CSS pixels a chip is moved before that is a drag

type Source = Reads<"scores" | "tasks" | "task" | "view"> &
  Syncs<"tasks" | "task"> &
  Shows<"spoken">;

export const chips: Panel<Source> = (el, source) => {
  const list = make("div", "chip-list");
  list.setAttribute("role", "group");
  list.setAttribute("aria-label", "Tasks shown");
  const label = make("span", "choice-name", "Show");
  const alone = button("chip-alone", "", "", () => {
    const { task, tasks, scores } = source.state;
    const first = tasks[0] ?? scores?.tasks[0]?.name ?? null;
    source.sync({ task: task === null ? first : null });
  });
  /** The task before or behind the one in view; the first comes after the last. */
  const go = (by: number): void => {
    const steps = stepped(source.state);
    const at = steps.indexOf(source.state.task ?? "") + by;
    const task = steps[(at + steps.length) % steps.length];
    if (task !== undefined) source.sync({ task });
  };
  const previous = button("step", "‹", "The task before", () => go(-1));
  const next = button("step", "›", "The next task", () => go(1));
  previous.setAttribute("aria-label", "Previous task");
  next.setAttribute("aria-label", "Next task");
  const slider = make("input", "slider");
  slider.type = "range";
  slider.min = "0";
  slider.setAttribute("aria-label", "Task");
  keepKeys(slider);
  const name = make("output", "solo-name");
  const step = make("div", "solo", previous, slider, next, name);
  el.append(label, list, step, alone);
  let order: string[] = []; // of the chips, hidden tasks among them
  slider.addEventListener("input", () =>
    source.sync({ task: stepped(source.state)[slider.valueAsNumber] ?? null }),
  );

  const reorder = (names: string[]): void => {
    order = names;
    source.sync({ tasks: names.filter((name) => source.state.tasks.includes(name)) });
  };
  const moved = (task: string, to: number): string[] => {
    const rest = order.filter((name) => name !== task);
    rest.splice(Math.max(0, Math.min(rest.length, to)), 0, task);
    return rest;
  };
  const chip = (task: string): HTMLElement => {
    let start: { x: number; y: number } | null = null;
    let dragged = false;
    const toggle = (): void => {
      const { tasks } = source.state;
      if (dragged) return;
      const next = order.filter((name) =>
        name === task ? !tasks.includes(task) : tasks.includes(name),
      );
      source.sync({ tasks: next });
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
      // Only where the dragged chip would come to lie under the pointer: else two chips of
      // different width change places for ever.
      const [box, held] = [over.getBoundingClientRect(), el.getBoundingClientRect()];
      const sameLine = Math.abs(box.top - held.top) < box.height / 2;
      const past =
        held.left < box.left
          ? event.clientX > box.right - held.width
          : event.clientX < box.left + held.width;
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
      source.show({ spoken: `${task} is now number ${order.indexOf(task) + 1}` });
    });
    return el;
  };

  /** Has a title of a map the focus, which goes with it when its task is shown alone? */
  const opened = (): boolean => focused(el)?.classList.contains("hw-map-open") ?? false;

  const draw = (): void => {
    const { scores, tasks, task } = source.state;
    const names = scores?.tasks.map(({ name }) => name) ?? [];
    el.hidden = names.length < 2;
    if (el.hidden) return;
    const inOrder = tasks.length === names.length && tasks.every((name, i) => name === names[i]);
    el.classList.toggle("hw-unusual", task !== null || !inOrder);
    if (
      order.length !== names.length ||
      order.filter((name) => tasks.includes(name)).join("\n") !== tasks.join("\n")
    ) {
      order = [
        ...tasks.filter((name) => names.includes(name)),
        ...names.filter((name) => !tasks.includes(name)),
      ];
    }
    const have = new Map(
      Array.from(list.children).map((chip) => [(chip as HTMLElement).dataset.task!, chip]),
    );
    const wanted = order.map((name) => (have.get(name) as HTMLElement | undefined) ?? chip(name));
    if (
      wanted.length !== list.children.length ||
      wanted.some((chip, i) => list.children[i] !== chip)
    )
      place(list, wanted);
    for (const chip of wanted)
      chip.setAttribute("aria-pressed", String(tasks.includes(chip.dataset.task!)));
    const steppable = viewOf(source.state).uses.has("task");
    const one = steppable && task !== null;
    setText(alone, one ? "All tasks" : "One at a time");
    alone.title = one ? "Show all tasks again" : "Step through the tasks, one large map each";
    alone.hidden = !steppable;
    if (one && list.hidden === false && opened()) alone.focus({ preventScroll: true });
    list.hidden = one;
    step.hidden = !one;
    const steps = stepped(source.state);
    slider.max = String(steps.length - 1);
    slider.value = String(Math.max(0, steps.indexOf(task ?? "")));
    slider.setAttribute("aria-valuetext", task ?? "");
    setText(name, task === null ? "" : `${task} (${steps.indexOf(task) + 1} of ${steps.length})`);
  };
  draw();
  return source.subscribe((changed) => {
    if (changed.has("scores") || changed.has("tasks") || changed.has("task") || changed.has("view"))
      draw();
  });
};

/** Put the chips in order; the one that is dragged or focused is not moved in the document. */
function place(list: HTMLElement, wanted: HTMLElement[]): void {
  for (const old of Array.from(list.children))
    if (!wanted.includes(old as HTMLElement)) old.remove();
  const active = focused(list);
  const held = wanted.findIndex((chip) => chip === active || chip.classList.contains("hw-dragged"));
  wanted.forEach((chip, i) => {
    if (i === held) return;
    if (i < held) list.insertBefore(chip, wanted[held]!);
    else list.append(chip);
  });
  if (held >= 0 && !wanted[held]!.isConnected)
    list.insertBefore(wanted[held]!, wanted[held + 1] ?? null);
}

/** The tasks the slider steps through: those shown, or all when the one in view is hidden. */
function stepped({ tasks, task, scores }: Pick<State, "tasks" | "task" | "scores">) {
  return task === null || tasks.includes(task)
    ? tasks
    : (scores?.tasks.map(({ name }) => name) ?? []);
}
