// The widget as one HTML file that opens from disk, made in the browser, without a kernel. Twin of
// headwidget/display/page.py; tests/golden/page.json holds the two together.

import type { Scores } from "../scores/head_scores";

/** What a page is made of. */
export interface PageParts {
  /** The widget's own code and style, as the host has them; null where it keeps them. */
  readonly script: string | null;
  readonly css: string | null;
  readonly header: unknown;
  readonly buffer: ArrayBufferView<ArrayBuffer>;
  /** Settings and selection. */
  readonly state: object;
  /** The page's own title, where this already is one. */
  readonly title: string | null;
}

/** What the browser allows the page: its own script and style, each by its hash, and no other. */
const policy = (script: string, style: string): string =>
  [
    "default-src 'none'", // nothing is loaded
    `script-src '${script}'`,
    `style-src '${style}'`,
    "img-src data:", // the drawing that Save turns into a PNG
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'", // no text becomes HTML or code
    "trusted-types 'none'",
  ].join("; ");

/** What stands before the widget's own style. */
const STYLE = `
:root { color-scheme: light dark; }
body {
  max-width: 1240px; margin: 0 auto; padding: 28px 24px;
  font: 14px/1.5 system-ui, sans-serif; color: CanvasText; background: Canvas;
}
h1 { margin: 0 4px 8px; font-size: 21px; line-height: 1.25; overflow-wrap: anywhere; }
footer {
  margin: 20px 4px 0; font-size: 12px; overflow-wrap: anywhere;
  color: color-mix(in srgb, currentColor 64%, transparent);
}
#headwidget .hw-model { display: none; } /* the title says it */
`;

/** The widget's own style, from that of a page. */
export const widgetStyle = (style: string): string =>
  style.startsWith(STYLE) ? style.slice(STYLE.length) : style;

/** Why no page can be made here, in a sentence; null where one can. */
export function whyNoPage({ script, css }: Pick<PageParts, "script" | "css">): string | null {
  const instead = 'explorer.to_html("heads.html") in Python makes it.';
  if (!script || !css) return `This host keeps the widget’s code to itself; ${instead}`;
  if (!globalThis.crypto?.subtle)
    return `The browser makes checksums on secure addresses (https) only; ${instead}`;
  return typeof CompressionStream === "undefined"
    ? `This browser is too old to pack the scores; ${instead}`
    : null;
}

/** The whole page. */
export async function pageFile(parts: PageParts, scores: Scores): Promise<string> {
  const why = whyNoPage(parts);
  if (why) throw new Error(why);
  const heads = scores.model ? `Attention heads of ${scores.model}` : "Attention heads";
  const state = { _header: parts.header, buffer: await packed(parts.buffer), ...parts.state };
  return pageText({
    title: parts.title || heads,
    footer: provenanceLine(scores),
    css: parts.css!,
    script: parts.script!,
    state: JSON.stringify(state),
  });
}

interface Texts {
  readonly title: string;
  readonly footer: string;
  readonly css: string;
  readonly script: string;
  readonly state: string;
}

/** The page from its texts. */
export async function pageText({ title, footer, css, script, state }: Texts): Promise<string> {
  const [code, style] = [closed(script), closed(STYLE + css)];
  const rules = policy(await hash(code), await hash(style));
  const lines = [
    "<!doctype html>",
    '<html lang="en">',
    "<head>",
    '<meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    `<meta http-equiv="Content-Security-Policy" content="${rules}">`,
    element("title", "", escaped(title)),
    element("style", "", style),
    "</head>",
    "<body>",
    element("h1", "", escaped(title)),
    element("main", ' id="headwidget"', ""),
    element("footer", "", escaped(footer)),
    // In JSON a "<" stands only inside strings, where it may be escaped.
    element(
      "script",
      ' type="application/json" id="headwidget-state"',
      state.replaceAll("<", "\\u003c"),
    ),
    element("script", ' type="module"', code),
    "</body>",
    "</html>",
    "",
  ];
  return lines.join("\n");
}

/** Put together here: this code stands in a script itself, where the tag of one could mislead. */
const element = (name: string, attributes: string, text: string): string =>
  `<${name}${attributes}>${text}</${name}>`;

/** Where the scores come from, in one line. Twin of `provenance.line`. */
export function provenanceLine({ about, tasks }: Pick<Scores, "about" | "tasks">): string {
  const counts = tasks.map(({ runs }) => `${runs} run${runs === 1 ? "" : "s"}`);
  const alike = counts.length > 3 && counts.every((count) => count === counts[0]);
  const runs = alike
    ? `${counts.length} tasks, ${counts[0]} each`
    : tasks.map(({ name }, i) => `${name}: ${counts[i]}`).join(", ");
  return about
    .flatMap(([label, text]) => [
      label === "partial" ? text : `${label} ${text}`,
      ...(label === "method" ? [runs] : []),
    ])
    .join(" · ");
}

/** How a policy names the script or style that has this text. */
export async function hash(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return `sha256-${base64(new Uint8Array(digest))}`;
}

/** The buffer deflated, as base64. */
async function packed(buffer: ArrayBufferView<ArrayBuffer>): Promise<string> {
  const stream = new Blob([buffer]).stream().pipeThrough(new CompressionStream("deflate"));
  return base64(new Uint8Array(await new Response(stream).arrayBuffer()));
}

function base64(bytes: Uint8Array): string {
  let text = "";
  for (let i = 0; i < bytes.length; i += 8192)
    text += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return btoa(text);
}

/** Code that cannot end the element it stands in. */
const closed = (text: string): string => text.replace(/<\/(script|style)/gi, "<\\/$1");

const escaped = (text: string): string =>
  text.replace(
    /[&<>"']/g,
    (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;" })[c]!,
  );
