"""CogQA files as they are published.

Questions are broken into sub-questions, each labelled with the cognitive skill that answers it.
"""

from __future__ import annotations

import difflib
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from headwidget.scores import validation
from headwidget.scores.file_errors import as_path
from headwidget.tasks import readers
from headwidget.tasks.task import Example, Task

SKILLS = (
    "Knowledge Recall",
    "Retrieval",
    "Logical Reasoning",
    "Decision-making",
    "Semantic Understanding",
    "Syntactic Understanding",
    "Inference",
    "Math Calculation",
)
"""The eight cognitive skills, in the order of the figures of Ma et al. (2025)."""


@dataclass
class CogQAReport:
    """What :func:`read_cogqa` made of a file's skill labels and steps.

    Examples that are in no task are kept here.
    """

    steps: int = 0
    """How many sub-questions the file has."""
    respelt: dict[str, str] = field(default_factory=dict)
    """Labels as written -> the skill they were taken for.

    Only where more than case, spaces and hyphens differ.
    """
    rare: dict[str, list[Example]] = field(default_factory=dict)
    """Skill -> its examples, where they were too few for a task."""
    unknown: dict[str, list[Example]] = field(default_factory=dict)
    """Labels that are like none of the eight skills, as written -> their examples."""
    malformed: list[str] = field(default_factory=list)
    """A sentence for each item or step that could not be read, saying where it is."""

    def sentences(self) -> list[str]:
        """What was not taken as it stands, in plain words; empty when all was."""
        sentences = []
        if self.rare:
            sentences.append(f"too few examples for a task: {_counts(self.rare)}.")
        if self.unknown:
            sentences.append(f"skills that are none of the eight: {_counts(self.unknown)}.")
        if self.respelt:
            pairs = [f"{label!r} for {skill!r}" for label, skill in self.respelt.items()]
            sentences.append(f"misspelt skills were taken for the nearest: {', '.join(pairs)}.")
        if self.malformed:
            more = f" (and {len(self.malformed) - 3} more)" if len(self.malformed) > 3 else ""
            sentences.append("left out: " + " ".join(self.malformed[:3]) + more)
        return sentences


class _Step(NamedTuple):
    question: str
    answer: str
    skill: str


def read_cogqa(
    path: str | Path, *, least: int = 10, report: CogQAReport | None = None
) -> list[Task]:
    """The tasks of a CogQA file, one for each cognitive skill.

    They come in the order of the figures of Ma et al. (2025). The file is a JSON list of
    ``{question, answer, generated: [{subquestion, answer, cognitive_skill}, …]}``. Each
    sub-question becomes an example whose prompt holds the question and the earlier steps with
    their answers. Skills are recognised whatever their case, spaces and hyphens, and close
    misspellings too. A skill with fewer than ``least`` examples makes no task. One warning says
    all that was not taken as it stands; pass a :class:`CogQAReport` as ``report`` to get at it.

    >>> import json, tempfile
    >>> step = {"subquestion": "What is 2 + 2?", "answer": "4"}
    >>> step["cognitive_skill"] = "math calculation"
    >>> with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
    ...     json.dump([{"question": "Is 2 + 2 even?", "answer": "yes", "generated": [step]}], file)
    ...     file.flush()
    ...     [task] = read_cogqa(file.name, least=1)
    >>> task.name, task.examples[0].answer
    ('Math Calculation', ' 4')
    """
    if type(least) is not int or least < 1:
        raise ValueError(f"least is how many examples a task needs, 1 or more; got {least!r}.")
    path = as_path(path, "read_cogqa takes the path of a CogQA file")
    report = CogQAReport() if report is None else report
    by_skill: dict[str, list[Example]] = {skill: [] for skill in SKILLS}
    meanings: dict[str, str | None] = {}  # label as written -> skill, looked up once
    for item, (question, steps) in _items(path, report):
        lines = [f"Question: {question}"]
        for step in _steps(steps, item, report):
            report.steps += 1
            lines.append(f"Q: {step.question}")
            answer = step.answer if step.answer[0].isspace() else f" {step.answer}"
            example = Example("\n".join(lines) + "\nA:", answer)
            lines.append(f"A: {step.answer.strip()}")
            if step.skill not in meanings:
                meanings[step.skill] = _skill(step.skill, report)
            skill = meanings[step.skill]
            if skill is None:
                report.unknown.setdefault(step.skill, []).append(example)
            else:
                by_skill[skill].append(example)
    tasks = []
    for skill, examples in by_skill.items():
        if len(examples) >= least:
            tasks.append(Task(skill, examples, category=skill))
        elif examples:
            report.rare[skill] = examples
    if sentences := report.sentences():
        warnings.warn(f"{path.name}: " + " ".join(sentences), stacklevel=2)
    if not tasks:
        raise ValueError(
            f"{path.name}: none of the eight skills has {least} examples or more "
            f"({report.steps} sub-questions in all); lower least=…."
        )
    return tasks


def _items(path: Path, report: CogQAReport) -> Iterator[tuple[int, tuple[str, list[Any]]]]:
    """Each item's number, question and steps; what is malformed goes to the report."""
    items = readers.json_of(readers.text_of(path), path.name)
    if not isinstance(items, list):
        raise ValueError(
            f"{path.name} must hold a JSON list of {{question, answer, generated}}; "
            f"it holds a {type(items).__name__}."
        )
    for number, item in enumerate(items):
        if not isinstance(item, dict):
            report.malformed.append(f"item {number} is a {type(item).__name__}, not an object.")
        elif not isinstance(item.get("question"), str) or not item["question"].strip():
            report.malformed.append(f"item {number} has no 'question' text.")
        elif not validation.is_encodable(item["question"]):
            report.malformed.append(f"item {number} has half a letter in its 'question'.")
        elif not isinstance(item.get("generated"), list):
            report.malformed.append(f"item {number} has no list 'generated' of sub-questions.")
        else:
            yield number, (item["question"].strip(), item["generated"])


def _steps(steps: list[Any], item: int, report: CogQAReport) -> Iterator[_Step]:
    """An item's steps up to the first malformed one.

    What follows it would be asked without a step that it builds on.
    """
    for number, step in enumerate(steps):
        where = f"item {item}, step {number}"
        rest = f" (nor the {len(steps) - number - 1} after it)" if number < len(steps) - 1 else ""
        if not isinstance(step, dict):
            report.malformed.append(f"{where} is a {type(step).__name__}, not an object{rest}.")
            return
        texts = {key: _text(step.get(key)) for key in _STEP_KEYS}
        if missing := [key for key, text in texts.items() if not text.strip()]:
            report.malformed.append(f"{where} has no {missing[0]!r} text{rest}.")
            return
        if broken := [key for key, text in texts.items() if not validation.is_encodable(text)]:
            report.malformed.append(f"{where} has half a letter in its {broken[0]!r}{rest}.")
            return
        question, answer, skill = texts.values()
        yield _Step(question.strip(), answer.rstrip(), skill.strip())


_STEP_KEYS = ("subquestion", "answer", "cognitive_skill")


def _text(value: Any) -> str:
    """A text or a number (``"answer": 4``) as text; nothing for anything else."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return str(value) if number or isinstance(value, str) else ""


def _plain(label: str) -> str:
    """A label without case, spaces, hyphens and the like."""
    return re.sub(r"[\W_]+", "", label).lower()


_PLAIN = {_plain(skill): skill for skill in SKILLS}


def _skill(label: str, report: CogQAReport) -> str | None:
    """The skill that a label means, or None; a misspelling is noted."""
    plain = _plain(label)
    if plain in _PLAIN:
        return _PLAIN[plain]
    near = difflib.get_close_matches(plain, _PLAIN, n=1, cutoff=0.8)
    if not near:
        return None
    report.respelt[label] = _PLAIN[near[0]]
    return _PLAIN[near[0]]


def _counts(groups: dict[str, list[Example]]) -> str:
    counts = Counter({label: len(examples) for label, examples in groups.items()})
    return ", ".join(f"{label!r} ({count})" for label, count in counts.most_common())
