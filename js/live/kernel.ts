// Whether the kernel behind a lab is there: what the host knows of it, and whether it answers.
//
// A kernel that runs a cell answers nothing until the cell ends; that is "busy" where the host
// says so. What no host tells and no answer shows is "silent", never "gone".

/**
 * "away": no connection to it, which may come back. "gone": it ended or was restarted, so what
 * this view shows is all there will be.
 */
export type KernelState = "here" | "busy" | "silent" | "away" | "gone";

/** A signal of JupyterLab's. */
interface HostSignal {
  connect(slot: () => void): unknown;
  disconnect(slot: () => void): unknown;
}
/** Can nothing be asked of it now? */
export const isOut = (kernel: KernelState): boolean => kernel === "gone" || kernel === "away";

/** The part of JupyterLab's kernel connection that is read; other hosts have none. */
interface HostKernel {
  readonly status?: string;
  readonly connectionStatus?: string;
  readonly isDisposed?: boolean;
  readonly statusChanged?: HostSignal;
  readonly connectionStatusChanged?: HostSignal;
  readonly disposed?: HostSignal;
}
export interface Watch {
  readonly state: KernelState;
  /** Something came from the kernel. */
  heard(): void;
  /** An answer is due: say so where none comes. */
  expect(): void;
  /** The host has let go of the widget's connection, as it does when its kernel restarts. */
  gone(): void;
}

const ENDED = ["restarting", "autorestarting", "terminating", "dead"];
const LOOK_EVERY = 500; // ms
const BUSY_AFTER = 1000; // ms without an answer, where the host says that it runs a cell
const SILENT_AFTER = 10_000; // ms without an answer, where the host says nothing
const SIGNALS = ["statusChanged", "connectionStatusChanged", "disposed"] as const;

/**
 * Watch the kernel of a host's `widgetManager` until `signal` aborts; `report` is called when its
 * state changes.
 */
export function watchKernel(
  widgetManager: unknown,
  report: () => void,
  signal: AbortSignal,
): Watch {
  const manager = widgetManager as { readonly kernel?: HostKernel | null } | undefined;
  const kernel = manager?.kernel ?? null;
  let state: KernelState = "here";
  let asked: number | null = null; // when an answer was first due
  let looking: ReturnType<typeof setInterval> | undefined;
  const become = (next: KernelState): void => {
    if (state === "gone" || state === next || signal.aborted) return;
    state = next;
    report();
  };
  const rest = (): void => {
    clearInterval(looking);
    looking = undefined;
    asked = null;
  };
  const gone = (): void => {
    rest();
    become("gone");
  };
  const look = (): void => {
    if (asked === null || state === "away") return;
    const waited = performance.now() - asked;
    if (kernel?.status === "busy") {
      if (waited > BUSY_AFTER) become("busy");
    } else if (waited > SILENT_AFTER) become("silent");
  };
  const hostSays = (): void => {
    if (kernel?.isDisposed || ENDED.includes(kernel?.status ?? "")) gone();
    else if (kernel?.connectionStatus && kernel.connectionStatus !== "connected") become("away");
    else if (state === "away") become("here");
  };
  for (const name of SIGNALS) kernel?.[name]?.connect(hostSays);
  signal.addEventListener("abort", () => {
    rest();
    for (const name of SIGNALS) kernel?.[name]?.disconnect(hostSays);
  });
  return {
    gone,
    get state() {
      return state;
    },
    heard() {
      rest();
      if (state === "busy" || state === "silent") become("here");
    },
    expect() {
      if (state === "gone" || signal.aborted) return;
      asked ??= performance.now();
      looking ??= setInterval(look, LOOK_EVERY);
    },
  };
}
