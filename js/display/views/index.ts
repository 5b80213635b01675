// Every view, registered once. Nobody else compares a view's name: who needs to know something
// asks the view (`viewOf`) or its picture.
//
// Twin of headwidget/display/views; tests/golden/views.json holds the two together.

import type { Settings, ViewName } from "../settings";
import { Agreement } from "./agreement";
import { Categories } from "./categories";
import { Tasks } from "./tasks";
import type { View } from "./view";

/** Every view by its name, in the order that the widget offers them. */
export const VIEWS: Readonly<Record<ViewName, View>> = {
  tasks: new Tasks(),
  agreement: new Agreement(),
  categories: new Categories(),
};

/** The view that the settings ask for. */
export const viewOf = ({ view }: Pick<Settings, "view">): View => VIEWS[view];
