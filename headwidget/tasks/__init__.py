"""Tasks: prompts with their answers, foils and held-out splits; and the built-in suites.

Needs no torch.
"""

from __future__ import annotations

from headwidget.tasks.cogqa import CogQAReport, read_cogqa
from headwidget.tasks.suites import suite
from headwidget.tasks.surface import surface_accuracy
from headwidget.tasks.task import Example, Task
from headwidget.tasks.word_pairs import Relation

__all__ = ["CogQAReport", "Example", "Relation", "Task", "read_cogqa", "suite", "surface_accuracy"]
