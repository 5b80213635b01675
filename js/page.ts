// What an exported page runs: the same widget, on a stand-in model with the data of the page.

import { messageOf } from "./display/message";
import { standIn } from "./model";
import widget from "./widget";

const el = document.getElementById("headwidget")!;

async function start(): Promise<void> {
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
  const bytes = await new Response(unpacked).arrayBuffer();
  widget.render({ model: standIn({ ...state, _buffer: new DataView(bytes) }), el });
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const newer = Uint8Array as { fromBase64?: (text: string) => Uint8Array<ArrayBuffer> };
  if (newer.fromBase64) return newer.fromBase64(text);
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = characters.charCodeAt(i);
  return bytes;
}

start().catch((error) => {
  console.error(error);
  el.className = "hw-error";
  el.textContent = `This page could not start: ${messageOf(error)}`;
});
