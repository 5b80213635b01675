// Tokens as people read them.

const SIGNS: Readonly<Record<string, string>> = { " ": "␣", "\n": "⏎", "\t": "⇥" };

/** A token with a sign for every space, line end and other character that has no shape. */
export const visible = (token: string): string =>
  token.replace(
    /[\s\p{C}\p{Z}]/gu,
    (character) => SIGNS[character] ?? `\\u{${character.codePointAt(0)!.toString(16)}}`,
  ) || "∅";
