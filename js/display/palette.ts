// The colours of maps and categories, as hex stops from low to high. Twin of
// headwidget/display/palette.py.

import type { MapName } from "./settings";

export type Rgb = readonly [number, number, number];
export type Scheme = "light" | "dark";

export const MAPS: Record<MapName, string> = {
  viridis:
    "440154 48186a 472d7b 424086 3b528b 33638d 2c728e 26828e 21918c 1fa088 28ae80 3fbc73 " +
    "5ec962 84d44b addc30 d8e219 fde725",
  cividis:
    "00224e 002e6a 1a386f 32436d 434e6c 535a6d 61656f 6f7073 7d7c78 8c8878 9b9476 aba072 " +
    "bcae6c cdbb63 dec958 f0d846 fee838",
  magma:
    "000004 0a0822 1d1147 36106b 51127c 6a1c81 832681 9c2e7f b73779 d0416f e75263 f56b5c " +
    "fc8961 fea772 fec488 fde2a3 fcfdbf",
  turbo:
    "30123b 392a73 4040a2 4456c7 466be3 4680f6 4294ff 37a8fa 28bceb 1ccdd8 18ddc2 1fe9af " +
    "32f298 4ef97d 6dfe62 8bff4b a4fc3c b9f635 cdec34 dfdf37 eecf3a f8be39 fdac34 fe962b " +
    "fb7e21 f46617 eb500e df3f08 d02f05 be2102 a91601 920b01 7a0403",
  "blue-orange": "08306b 1a5ba3 3f87c8 7bb1dd b9d5ea f3f2ef f8d3ad f2aa66 e07f2c b5580f 6b2f04",
};
// Zero takes the page's own tone: white maps glare on a dark page.
const DARK_DIVERGING =
  "c4e3ff 86c1f5 4b98dc 2b6ca6 21466a 24272b 5f3d1d 9b5a1c d67f2a f7b161 ffe3bd";

interface Categories {
  /** Blue, orange, green and red as in the published figure, then more. */
  readonly single: string;
  /** Heads of 2, 3 and 4 categories. */
  readonly several: string;
  readonly unclassified: string;
}
export const CATEGORIES: Record<Scheme, Categories> = {
  light: {
    single: "4a7ad8 fe8700 1fca7f ed492b 8fd8f7 b5b000 b0146a 5b6b7b",
    several: "5e0b92 3f230e f496dd",
    unclassified: "d9d9d9",
  },
  dark: {
    single: "257df9 ff9909 32cd94 eb5924 8fd8f7 c9c430 d8408f 94a5b5",
    several: "7a2bd4 854c21 fad3eb",
    unclassified: "383838",
  },
};

/** Opacity of a head that does not pass. */
export const DIMMED = 0.13;

// Plain loops and no spread arrays: they run in the first frame, before the code is compiled.
const hex = (text: string): Rgb => {
  const number = Number.parseInt(text, 16);
  return [number >> 16, (number >> 8) & 255, number & 255];
};
const list = (text: string): Rgb[] => text.split(" ").map(hex);

/** A colour map as its stops from low to high. */
export function stops(name: MapName, scheme: Scheme): Rgb[] {
  return list(name === "blue-orange" && scheme === "dark" ? DARK_DIVERGING : MAPS[name]);
}

/** The colour of every class of the legend, by place: Unclassified, each category, several. */
export function categoryColours(categories: number, scheme: Scheme): Rgb[] {
  const { single, several, unclassified } = CATEGORIES[scheme];
  const [colours, more] = [list(single), list(several)];
  const count = categories - 1;
  return [
    hex(unclassified),
    ...Array.from({ length: categories }, (_, i) => colours[i % colours.length]!),
    ...Array.from({ length: Math.max(0, count) }, (_, i) =>
      count <= more.length ? more[i]! : between(more, i / (count - 1)),
    ),
  ];
}

/** 256 colours between the stops. */
export const ramp = (colours: readonly Rgb[]): Rgb[] =>
  Array.from({ length: 256 }, (_, i) => between(colours, i / 255));

/** The colour at a fraction of the way along the stops. */
function between(colours: readonly Rgb[], way: number): Rgb {
  const at = way * (colours.length - 1);
  const low = Math.min(Math.floor(at), colours.length - 2);
  const [a, b] = [colours[low]!, colours[low + 1]!];
  const mix = (from: number, to: number): number =>
    Math.floor(from + (to - from) * (at - low) + 0.5);
  return [mix(a[0], b[0]), mix(a[1], b[1]), mix(a[2], b[2])];
}

/** The colours by place: 256 of a map, or one for each class of the legend. */
export const coloursByPlace = (scale: MapName | null, scheme: Scheme, categories: number): Rgb[] =>
  scale === null ? categoryColours(categories, scheme) : ramp(stops(scale, scheme));

/** Colours as canvas pixels of that opacity, four bytes each. */
export function pixels(colours: readonly Rgb[], opacity: number): Uint32Array {
  const alpha = Math.round(255 * opacity) << 24;
  const out = new Uint32Array(colours.length);
  for (let i = 0; i < out.length; i++) {
    const [r, g, b] = colours[i]!;
    out[i] = r | (g << 8) | (b << 16) | alpha; // browsers run on little-endian platforms only
  }
  return out;
}

export const css = ([r, g, b]: Rgb): string => `rgb(${r} ${g} ${b})`;
