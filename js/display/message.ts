// What an error says, as text for the page.

/** The message of an error, or whatever else was thrown as text. */
export const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);
