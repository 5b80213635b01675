// What is built: the widget for anywidget, which starts itself where it stands in an exported page.

import { standsInPage, startPage } from "./page";
import widget from "./widget";

if (standsInPage(import.meta.url)) startPage(widget.render);

export default widget;
