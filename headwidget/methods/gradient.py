"""gradient: d log p(answer) / d gate; every prompt has gates, all heads take one backward."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headwidget.models import hooks
from headwidget.scoring import slopes
from headwidget.scoring.batch import collate, correct, plan
from headwidget.scoring.contract import Chunk, Job, Method, Report, TaskReport, land, taken_up


@dataclass(frozen=True)
class Gradient:
    """Options of ``method="gradient"``."""

    abs: bool = False
    """Take the absolute value, as Michel et al. (2019) do; without it, positive helps."""

    def __post_init__(self) -> None:
        if not isinstance(self.abs, bool):
            raise ValueError(f"abs must be True or False; got {self.abs!r}.")


def run(job: Job) -> Iterator[Chunk | Report]:
    """A chunk for every batch; the slopes of the first prompts are held against small steps."""
    model, task = job.model, job.task
    planned = plan(task.examples, model, job.batch_size)
    kept = job.kept.get(f"{task.name}, slopes")
    checked, off = 0, 0.0  # directions so far, the worst in them
    if kept is not None:
        with taken_up("the slopes"):
            off = float(kept.facts["off"])
    for number, runs in enumerate(job.portions(planned)):
        directions = slopes.directions(model, number, len(runs) < len(planned[0]), checked)
        with hooks.differentiating(model):
            batch = collate(runs, [task.examples[i] for i in runs], model)
            measured = slopes.slopes(model, batch, find_cuts=number == 0)
            if directions:
                seed = job.seed + checked
                off = max(off, slopes.check(model, batch, measured, seed, directions) or 0.0)
            values = measured.values.abs() if job.options.abs else measured.values
            right = correct(measured.logits, batch)
            chunk = land(task.name, batch.runs, slice(None), values, right)
        yield chunk
        checked += directions
        if directions:
            job.kept.put(f"{task.name}, slopes", {"off": off}, {})
            yield Report({task.name: TaskReport(record=slopes.as_record(off))})


METHOD = Method(
    "gradient",
    run,
    Gradient,
    signed=lambda options: not options.abs,
    skips_done=True,
    about=lambda options: (
        "How fast log p(answer) changes with the head's gate"
        + (", up or down, to first order." if options.abs else "; positive helps, to first order.")
    ),
    explained=(
        "Every head's output is multiplied by a gate, which is 1; the score is the slope of the "
        "answer's log-probability along that gate. One forward and one backward pass give the "
        "slopes of all heads.",
        "A score of 0.2 means that 1% more of the head adds about 0.002 to the log-probability. "
        "Below 0, more of the head makes the answer less likely.",
        "A slope is not what is lost without the head: heads that saturate, or cover for each "
        "other, may have small slopes and large effects. Ablation measures the loss itself.",
    ),
    paper=("Michel et al. 2019", "https://arxiv.org/abs/1905.10650"),
)
