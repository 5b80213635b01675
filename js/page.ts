// What an exported page runs: the same widget, on a stand-in model filled from the page's own data.

import { standIn } from "./model";
import widget from "./widget";

const { buffer, ...state } = JSON.parse(document.getElementById("headwidget-state")!.textContent!);
const bytes = Uint8Array.from(atob(buffer), (character) => character.charCodeAt(0));
widget.render({
  model: standIn({ ...state, _buffer: new DataView(bytes.buffer) }),
  el: document.getElementById("headwidget")!,
});
