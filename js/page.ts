// An exported page: the same widget, on a stand-in model with the data of the page.

import { type Linked, linked } from "./display/link";
import { messageOf } from "./display/message";
import { hash, widgetStyle } from "./display/page_file";
import { decode } from "./display/wire";
import { standIn, type WidgetModel } from "./model";

type Render = (view: { model: WidgetModel; el: HTMLElement }) => () => void;

/** Is a module of that address written in an exported page, not loaded from a file of its own? */
export const standsInPage = (url: string): boolean =>
  withoutFragment(url) === withoutFragment(document.baseURI) &&
  document.getElementById("headwidget-state") !== null;

const withoutFragment = (url: string): string => url.replace(/#.*/s, "");

/** Show the page's scores in it. */
export function startPage(render: Render): void {
  const el = document.getElementById("headwidget")!;
  start(render, el).catch((error) => {
    console.error(error);
    el.className = "hw-error";
    el.textContent = `This page could not start: ${messageOf(error)}`;
  });
}

async function start(render: Render, el: HTMLElement): Promise<void> {
  const { buffer, ...state } = JSON.parse(
    document.getElementById("headwidget-state")!.textContent!,
  );
  if (typeof DecompressionStream === "undefined") {
    throw new Error(
      "this browser is too old to unpack its scores; " +
        "open it in a Chrome, Edge, Firefox or Safari from 2023 or later.",
    );
  }
  const unpacked = new Blob([fromBase64(buffer)])
    .stream()
    .pipeThrough(new DecompressionStream("deflate"));
  const bytes = new DataView(await new Response(unpacked).arrayBuffer());
  const asked = fromLink(() => linked(location.hash, decode(state._header, bytes)));
  const { _header, ...settings } = state;
  const model = { ...state, _buffer: bytes, ...(await ownText()), _page: settings, ...asked };
  render({ model: standIn(model), el });
  // A link to this page that is followed in it: the page as the link has it.
  addEventListener("hashchange", () => location.reload());
}

/** What the link asks for; where it does not fit, a sentence instead. */
function fromLink(read: () => Partial<Linked>): object {
  try {
    return read();
  } catch (error) {
    const why = messageOf(error);
    return { _notice: `The link does not fit this page, which is shown as it was saved: ${why}.` };
  }
}

/** The page's own code, style and title, to make another page of. */
async function ownText(): Promise<{ _esm: string | null; _css: string | null; _title: string }> {
  const script = await allowed("script[type=module]");
  const style = await allowed("style");
  return { _esm: script, _css: style && widgetStyle(style), _title: document.title };
}

/**
 * The text of the element that the page's policy names by its hash: what somebody else put into
 * the file must not get into a page that allows it.
 */
async function allowed(selector: string): Promise<string | null> {
  const policy = document.querySelector<HTMLMetaElement>("meta[http-equiv]")?.content ?? "";
  for (const { textContent: text } of document.querySelectorAll(selector)) {
    if (text && globalThis.crypto?.subtle && policy.includes(await hash(text))) return text;
  }
  return null;
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const newer = Uint8Array as { fromBase64?: (text: string) => Uint8Array<ArrayBuffer> };
  if (newer.fromBase64) return newer.fromBase64(text);
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = characters.charCodeAt(i);
  return bytes;
}
