// What the run's line says: how far a run is, how it ended, and what is known of the kernel.

import type { LabState, RunState } from "./lab";
import { headsChanged } from "./past_text";

/** What stands in the line, and the whole of it, shown when it is pointed at. */
export interface Words {
  readonly short: string;
  readonly long: string;
}
type Said = Pick<LabState, "_state" | "_scaled" | "_past" | "kernel" | "method">;

export const isRunning = ({ state }: RunState): boolean =>
  state === "running" || state === "stopping";

const joined = (...parts: (string | undefined)[]): string => parts.filter(Boolean).join(" · ");
const alike = (text: string): Words => ({ short: text, long: text });

/** What is known of the kernel, where that is more than that it answers. */
export function kernelText({ kernel }: Pick<Said, "kernel">): Words | null {
  if (kernel === "gone") return alike("The kernel is gone.");
  if (kernel === "away") return alike("No connection to the kernel.");
  if (kernel === "busy") return alike("The kernel is busy with a cell.");
  return kernel === "silent" ? alike("The kernel does not answer.") : null;
}

export function runText({ _state: now, _scaled: scaled, _past: runs, method }: Said): Words {
  const seconds = (number: number): string =>
    number < 90 ? `${Math.round(number)} s` : `${Math.round(number / 60)} min`;
  // Said while heads are changed: how they were when the scores that are shown were made.
  const shown = scaled.length ? runs.find((run) => run.shown) : undefined;
  const then = shown && (shown.heads ? headsChanged(shown.heads) : "all heads on");
  if (isRunning(now)) {
    const far = now.done && now.total ? `${Math.floor(now.done)} of ${now.total}` : "";
    const left = now.left && Number.isFinite(now.left) ? `${seconds(now.left)} left` : "";
    const short = joined([now.what, far].filter(Boolean).join(" "), left);
    const whole = far && `${far} ${now.unit}`;
    return { short, long: joined(now.method, now.what, whole, left, now.detail) };
  }
  // A method that is chosen changes nothing before it has run.
  const other = now.method && now.method !== method ? `the maps show ${now.method}` : undefined;
  const words = (text: string): Words => ({
    short: joined(other ?? text, then),
    long: joined(`${now.method}: ${text}`, then),
  });
  if (now.again) return words(`the run of ${now.again}`);
  const halved = now.halved ? `, memory ran out: batches of ${now.halved}` : "";
  if (now.state === "done") return words(`done in ${seconds(now.seconds ?? 0)}${halved}`);
  if (now.state === "stopped") {
    const kept = `stopped, ${now.kept} prompts kept`;
    return words(now.kept ? kept : "stopped before any prompt was done");
  }
  return alike(now.state === "idle" ? "Nothing is scored yet." : "");
}

/** In the line of the run: that something is wrong, where the line does not say it already. */
export function troubleText(
  { _state: now, kernel }: Pick<LabState, "_state" | "kernel">,
  whyNot: string,
): string {
  if (isRunning(now) || kernelText({ kernel })) return "";
  if (whyNot) return "Cannot run: see below.";
  return now.state === "failed" ? "The run failed: see below." : "See the note below.";
}

/** What went wrong, as sentences; `whyNot` says why the method chosen cannot run. */
export function troubles(
  { _state: now, _trouble: trouble, kernel }: Pick<LabState, "_state" | "_trouble" | "kernel">,
  whyNot: string,
): string {
  const lost = {
    gone: "The kernel is gone; what was scored stays. Run the cell again.",
    away: "There is no connection to the kernel; what was scored stays.",
    silent: "The kernel does not answer. If it has ended, run the cell again.",
    busy: "",
    here: "",
  }[kernel];
  const failed = now.state === "failed" ? now.message : "";
  const kept = now.state === "failed" && now.kept ? `${now.kept} prompts that were done stay.` : "";
  return [lost, failed, kept, trouble, whyNot].filter(Boolean).join(" ");
}
