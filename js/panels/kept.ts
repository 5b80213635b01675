// The number that each rule had last, so that switching rules and back keeps what was typed.

import { type Rule, START, type Threshold } from "../scores/threshold";

type Asked = Pick<Threshold, "rule" | "normalize"> & { readonly method?: string | undefined };

/** The numbers of one view; a value belongs to its method and scale, the other rules to none. */
export class Kept {
  readonly #numbers = new Map<string, number>();

  /** Remember the number that is shown; none is not remembered. */
  note({ threshold, ...asked }: Asked & Pick<Threshold, "threshold">): void {
    if (threshold === null) this.#numbers.delete(keyOf(asked));
    else this.#numbers.set(keyOf(asked), threshold);
  }

  /** The number that a rule had on this scale, or the one it starts with. */
  of(asked: Asked): number | null {
    return this.#numbers.get(keyOf(asked)) ?? START[asked.rule];
  }
}

const keyOf = ({ rule, normalize, method = "" }: Asked): string =>
  rule === "value" ? `value ${normalize} ${method}` : (rule satisfies Rule);
