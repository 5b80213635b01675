// The page made in the browser is the one that Python makes.

import { describe, expect, it } from "vitest";
import golden from "../../../tests/golden/page.json";
import wireCase from "../../../tests/golden/wire.json";
import {
  pageFile,
  pageText,
  provenanceLine,
  whyNoPage,
  widgetStyle,
} from "../../display/page_file";
import { decode, type Header } from "../../display/wire";
import { bytes } from "../fixtures";

describe("a page made in the browser", () => {
  it.each(golden)("has Python's text ($texts.footer)", async ({ texts, page }) => {
    expect(await pageText(texts)).toBe(page);
  });

  it.each(golden)("says as Python does where its scores come from", ({ texts, header }) => {
    expect(provenanceLine(header as never)).toBe(texts.footer);
  });

  it("holds the scores and the state", async () => {
    const buffer = bytes(wireCase.buffer);
    const header = wireCase.header as unknown as Header;
    const parts = {
      script: "1",
      css: "p {}",
      header,
      buffer: buffer as Uint8Array<ArrayBuffer>,
      state: { threshold: 0.5, tasks: ["</script>"] },
      title: null,
    };
    const page = await pageFile(parts, decode(header, buffer));
    const [, text] = /id="headwidget-state">(.*?)<\/script>/.exec(page)!;
    const { buffer: packed, _header, ...state } = JSON.parse(text!);
    expect(state).toEqual(parts.state);
    expect(_header).toEqual(header);
    const stream = new Blob([bytes(packed) as Uint8Array<ArrayBuffer>])
      .stream()
      .pipeThrough(new DecompressionStream("deflate"));
    expect(new Uint8Array(await new Response(stream).arrayBuffer())).toEqual(buffer);
    const [, style] = /<style>(.*?)<\/style>/s.exec(page)!;
    expect(widgetStyle(style!)).toBe("p {}");
  });

  it("is not made where the host keeps the code, with a sentence", () => {
    expect(whyNoPage({ script: null, css: "p {}" })).toMatch(/keeps the widget’s code to itself/);
    expect(whyNoPage({ script: "1", css: "p {}" })).toBeNull();
  });
});
