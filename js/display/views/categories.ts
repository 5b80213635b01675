// The categories view: which categories a head belongs to. Twin of
// headwidget/display/views/categories.py.
//
// A head belongs to the categories that have a task whose threshold it passes.

import type { TaskScores } from "../../scores/head_scores";
import { filled, reaches } from "../../scores/masks";
import { lazy, type Memo } from "../../scores/memo";
import { categoriesOf, cut, forCategories, members, passing } from "../../scores/threshold";
import { EIGHTS } from "../scales";
import type { Settings } from "../settings";
import type { Panel, Picture } from "./picture";
import { missingIn, View } from "./view";

const ALL = "All Categories";
const UNCLASSIFIED = "Unclassified";

export class Categories extends View {
  readonly name = "categories";
  readonly title = "Categories";
  readonly about = "Which categories a head belongs to";
  readonly uses: ReadonlySet<keyof Settings> = new Set([
    ...(["tasks", "threshold", "rule", "sign", "reduction", "normalize"] as const),
    ...(["orientation", "columns", "isolated"] as const),
  ]);

  picture(memo: Memo, settings: Settings): Picture {
    const groups = [...categoriesOf(memo.scores).keys()];
    const masks = members(memo, settings);
    const { classes, count } = classify(memo.cells, groups, masks);
    const names = [UNCLASSIFIED, ...groups];
    for (let n = 2; n <= groups.length; n++) names.push(`${n} categories`);
    const alone = settings.isolated === null ? -1 : names.indexOf(settings.isolated);
    const isolated =
      alone < 0 ? null : filled(new Uint8Array(memo.cells), (i) => Number(classes[i] === alone));
    const missing = missingFrom(memo, settings, [...masks.keys()]);
    const nowhere = inAll([...missing.values()]);
    return {
      panels: [
        { title: ALL, values: classes, passes: isolated, missing: nowhere, task: null },
        ...Array.from(masks, ([category, mask]) =>
          panelOf(
            category,
            groups.indexOf(category) + 1,
            mask,
            isolated,
            missing.get(category) ?? null,
          ),
        ),
      ],
      range: { low: 0, high: names.length - 1, step: 1, lowCapped: false, highCapped: false },
      colours: "categories",
      label: "categories",
      layersOn: settings.orientation ?? "x",
      columns: settings.columns,
      passing: reaches(count, 1),
      legend: legendOf(names, classes, nowhere),
      cuts: [],
      floor: null,
      signed: false,
      slots: null,
      layerTicks: EIGHTS,
      countWord: null,
    };
  }

  override passes(memo: Memo, task: TaskScores, settings: Settings): Uint8Array | null {
    return passing(memo, task, forCategories(settings));
  }

  override cut(memo: Memo, task: TaskScores, settings: Settings): number | null {
    return cut(memo, task, forCategories(settings));
  }
}

/** The class of every head, a place in the legend, and how many categories it belongs to. */
function classify(
  cells: number,
  groups: readonly string[],
  masks: ReadonlyMap<string, Uint8Array>,
): { classes: Uint16Array; count: Uint16Array } {
  const [classes, count] = [new Uint16Array(cells), new Uint16Array(cells)];
  groups.forEach((category, i) => {
    const mask = masks.get(category);
    if (!mask) return; // a hidden category keeps its place, and with it its colour
    for (let cell = 0; cell < cells; cell++) {
      if (!mask[cell]) continue;
      count[cell]!++;
      classes[cell] = count[cell] === 1 ? i + 1 : groups.length + count[cell]! - 1;
    }
  });
  return { classes, count };
}

/** For each category the heads that none of its tasks shown has measured; null: all are. */
function missingFrom(
  memo: Memo,
  { tasks }: Settings,
  categories: readonly string[],
): Map<string, Uint8Array | null> {
  const groups = categoriesOf(memo.scores);
  return new Map(
    categories.map((category) => {
      const shown = groups.get(category)!.filter((name) => tasks.includes(name));
      return [category, inAll(shown.map((name) => missingIn(memo, memo.task(name)!)))];
    }),
  );
}

/** 1 where every mask has 1; null where one of them has none at all, or there is no mask. */
function inAll(masks: readonly (Uint8Array | null)[]): Uint8Array | null {
  const [first, ...others] = masks;
  if (!first || others.includes(null)) return null;
  return first.map((value, i) => (value && others.every((mask) => mask![i]) ? 1 : 0));
}

/** The map of one category. */
function panelOf(
  title: string,
  place: number,
  mask: Uint8Array,
  keep: Uint8Array | null,
  missing: Uint8Array | null,
): Panel {
  const values = lazy(() => filled(new Uint16Array(mask.length), (i) => mask[i]! * place));
  return {
    title,
    get values() {
      return values();
    },
    passes: keep?.map((kept, i) => kept & mask[i]!) ?? null,
    missing,
    task: null,
  };
}

/** Every class with how many heads it has. */
function legendOf(
  names: readonly string[],
  classes: Uint16Array,
  missing: Uint8Array | null,
): Picture["legend"] {
  const counts = new Array<number>(names.length).fill(0);
  for (let cell = 0; cell < classes.length; cell++) if (!missing?.[cell]) counts[classes[cell]!]!++;
  return names.map((name, i) => ({ name, count: counts[i]! }));
}
