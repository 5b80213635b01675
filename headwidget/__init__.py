"""headwidget: which attention heads matter, for which task, and how sure are we? For any Hugging Face transformer, in Jupyter.

>>> import headwidget as hw
>>> hw.HeadScores.from_arrays({"copy": [[0.1, 0.9]]}, method="mine").top("copy", 1)
[(0, 1)]
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_WHERE = {
    "HeadScores": "headwidget.scores",
    "open": "headwidget.files",
    "Explorer": "headwidget.widget",
    "explore": "headwidget.widget",
    "compare": "headwidget.comparison",
    "difference": "headwidget.comparison",
    "Task": "headwidget.tasks",
    "Relation": "headwidget.tasks.relations",
    "tasks": "headwidget.tasks",
    "Model": "headwidget.models",
    "Family": "headwidget.families",
    "load": "headwidget.models",
    "register": "headwidget.families",
    "score": "headwidget.engine",
    "relations": "headwidget.relations",
    "salient": "headwidget.relations",
    "describe": "headwidget.sentences",
    "knockout": "headwidget.intervene",
    "amplify": "headwidget.intervene",
    "keep_only": "headwidget.circuit",
    "live": "headwidget.lab",
    "Lab": "headwidget.lab",
    "charts": "headwidget.charts",
    "dashboard": "headwidget.charts",
}
"""Where each public name lives. A module is imported when its name is first used, so ``import headwidget`` is fast and needs no torch."""

__all__ = [*_WHERE, "__version__"]  # noqa: PLE0604

if TYPE_CHECKING:
    from headwidget import charts as charts
    from headwidget import relations as relations
    from headwidget import tasks as tasks
    from headwidget.charts import dashboard as dashboard
    from headwidget.circuit import keep_only as keep_only
    from headwidget.comparison import compare as compare
    from headwidget.comparison import difference as difference
    from headwidget.engine import score as score
    from headwidget.families import Family as Family
    from headwidget.families import register as register
    from headwidget.files import open as open  # noqa: A004
    from headwidget.intervene import amplify as amplify
    from headwidget.intervene import knockout as knockout
    from headwidget.lab import Lab as Lab
    from headwidget.lab import live as live
    from headwidget.models import Model as Model
    from headwidget.models import load as load
    from headwidget.relations import salient as salient
    from headwidget.scores import HeadScores as HeadScores
    from headwidget.sentences import describe as describe
    from headwidget.tasks import Task as Task
    from headwidget.tasks.relations import Relation as Relation
    from headwidget.widget import Explorer as Explorer
    from headwidget.widget import explore as explore


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"headwidget has no {name!r}; it has {', '.join(sorted(_WHERE))}.")
    module = importlib.import_module(_WHERE[name])
    value = module if module.__name__ == f"headwidget.{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
