"""headwidget: which attention heads matter, for which task, and how sure are we?

For any Hugging Face transformer, in Jupyter.

>>> import headwidget as hw
>>> hw.HeadScores.from_arrays({"copy": [[0.1, 0.9]]}, method="mine").top("copy", 1)
[(0, 1)]
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_WHERE = {
    "HeadScores": "headwidget.scores",
    "open": "headwidget.scores.head_scores",
    "describe": "headwidget.scores.describe",
    "difference": "headwidget.scores.compare",
    "Explorer": "headwidget.display.explorer",
    "explore": "headwidget.display.explorer",
    "compare": "headwidget.display.explorer",
    "charts": "headwidget.charts",
    "dashboard": "headwidget.charts",
    "tasks": "headwidget.tasks",
    "Task": "headwidget.tasks",
    "Relation": "headwidget.tasks",
    "Model": "headwidget.models",
    "Family": "headwidget.models.families",
    "load": "headwidget.models",
    "register": "headwidget.models.families",
    "score": "headwidget.scoring.score",
    "register_method": "headwidget.scoring.registry",
    "relations": "headwidget.methods.word_maps",
    "salient": "headwidget.methods.word_maps",
    "knockout": "headwidget.interventions.knockout",
    "amplify": "headwidget.interventions.knockout",
    "keep_only": "headwidget.interventions.keep_only",
    "live": "headwidget.live.lab",
    "Lab": "headwidget.live.lab",
}
"""Where each public name lives. A module is imported when its name is first used.

So ``import headwidget`` is fast and needs no torch.
"""

_MODULES = ("charts", "relations", "tasks")
"""The public names that are modules."""

__all__ = [*_WHERE, "__version__"]  # noqa: PLE0604

if TYPE_CHECKING:
    from headwidget import charts as charts
    from headwidget import tasks as tasks
    from headwidget.charts import dashboard as dashboard
    from headwidget.display.explorer import Explorer as Explorer
    from headwidget.display.explorer import compare as compare
    from headwidget.display.explorer import explore as explore
    from headwidget.interventions.keep_only import keep_only as keep_only
    from headwidget.interventions.knockout import amplify as amplify
    from headwidget.interventions.knockout import knockout as knockout
    from headwidget.live.lab import Lab as Lab
    from headwidget.live.lab import live as live
    from headwidget.methods import word_maps as relations  # noqa: F401
    from headwidget.methods.word_maps import salient as salient
    from headwidget.models import Model as Model
    from headwidget.models import load as load
    from headwidget.models.families import Family as Family
    from headwidget.models.families import register as register
    from headwidget.scores import HeadScores as HeadScores
    from headwidget.scores.compare import difference as difference
    from headwidget.scores.describe import describe as describe
    from headwidget.scores.head_scores import open as open  # noqa: A004
    from headwidget.scoring.registry import register_method as register_method
    from headwidget.scoring.score import score as score
    from headwidget.tasks import Relation as Relation
    from headwidget.tasks import Task as Task


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"headwidget has no {name!r}; it has {', '.join(sorted(_WHERE))}.")
    module = importlib.import_module(_WHERE[name])
    value = module if name in _MODULES else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


class _Package(ModuleType):
    """Keeps ``hw.live`` the function: importing ``headwidget.live`` would replace it."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name == "live" and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
