/// <reference types="vite/client" />
// The direction of imports, and that nobody but the views themselves asks which view it is.

import { describe, expect, it } from "vitest";

const sources = import.meta.glob<string>(["../**/*.ts", "!./**"], {
  query: "?raw",
  import: "default",
  eager: true,
});
/** Every module by its path in js/, such as "panels/card.ts". */
const modules = new Map(Object.entries(sources).map(([path, text]) => [path.slice(3), text]));

/** The path of a module that is named relative to another one. */
function resolve(from: string, name: string): string {
  const folders = from.split("/").slice(0, -1);
  for (const step of name.split("/")) {
    if (step === "..") folders.pop();
    else if (step !== ".") folders.push(step);
  }
  const path = folders.join("/");
  return modules.has(`${path}.ts`) ? `${path}.ts` : `${path}/index.ts`;
}

/** What a module imports, types too. */
const imported = (path: string): string[] =>
  Array.from(modules.get(path)!.matchAll(/\bfrom "(\.[^"]*)"/g), ([, name]) =>
    resolve(path, name!),
  );

const folderOf = (path: string): string => path.slice(0, path.indexOf("/") + 1) || path;

describe("imports", () => {
  it("name modules that exist", () => {
    expect(modules.size).toBeGreaterThan(40);
    for (const path of modules.keys()) {
      for (const name of imported(path)) expect(modules.has(name), `${path}: ${name}`).toBe(true);
    }
  });

  it("have no cycle", () => {
    const done = new Set<string>();
    const visit = (path: string, above: readonly string[]): void => {
      expect(above, `a cycle: ${[...above, path].join(" > ")}`).not.toContain(path);
      if (done.has(path)) return;
      for (const name of imported(path)) visit(name, [...above, path]);
      done.add(path);
    };
    for (const path of modules.keys()) visit(path, []);
  });

  it.each([
    ["scores/", ["scores/"]],
    ["display/", ["scores/", "display/"]],
    ["panels/", ["scores/", "display/", "panels/", "state.ts"]],
    ["live/", ["scores/", "display/", "panels/", "live/", "state.ts", "model.ts"]],
  ])("of %s go to %j only", (folder, allowed) => {
    const own = [...modules.keys()].filter((path) => path.startsWith(folder));
    expect(own.length).toBeGreaterThan(3);
    for (const path of own) {
      for (const name of imported(path)) {
        expect(allowed, `${path} imports ${name}`).toContain(folderOf(name));
      }
    }
  });

  it("reach the widget model from the store and the lab only", () => {
    const paths = [...modules.keys()].filter((path) => imported(path).includes("model.ts"));
    expect(paths.sort()).toEqual(["live/lab.ts", "page.ts", "store.ts", "widget.ts"]);
    for (const path of ["page.ts", "widget.ts"]) {
      expect(modules.get(path), path).not.toMatch(/\bmodel\.(get|set|on|off|send|save_changes)\b/);
    }
  });
});

describe("a view's name", () => {
  it("is compared nowhere: views and pictures are asked instead", () => {
    const compared = /\bview [!=]==|[!=]== "(?:tasks|agreement|categories)"|case "(?:tasks|agree)/;
    for (const [path, text] of modules) {
      if (path.startsWith("display/views/")) continue;
      const lines = text.split("\n").filter((line) => compared.test(line));
      expect(lines, path).toEqual([]);
    }
  });
});
