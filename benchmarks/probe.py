"""The probe: reading heads for 8 tasks x 60 prompts against plain forwards of the same
prompts, and how long its classifier trains."""

from __future__ import annotations

import random

import numpy as np
import torch

import headwidget as hw
from benchmarks.timing import Row, against, seconds
from headwidget.methods.probe import Probe, read, splits
from headwidget.methods.probe_classifier import Features, Training, fit
from headwidget.models import Model
from headwidget.scoring.batch import batches
from headwidget.scoring.contract import Job
from headwidget.scoring.encode import EncodedTask, encode

TASKS, PROMPTS, TOKENS = 8, 60, 40
ROUNDS = 3
SECONDS = 20.0
"""What training may take on two cores."""


def rows() -> list[Row]:
    model = hw.load()
    tasks = [encode(task, model) for task in work()]
    return [*reading(model, tasks), *training(model, tasks)]


def work() -> list[hw.Task]:
    """Prompts of about 40 tokens, a fifth held out; each task draws its words from a list
    of its own that overlaps with the next one's."""
    rng = random.Random(0)
    words = (
        "river stone garden window letter bridge market winter summer doctor horse engine "
        "paper silver forest island mountain kitchen music train"
    ).split()
    tasks = []
    for number in range(TASKS):
        task_words = words[2 * number : 2 * number + 6]
        examples = [
            (" ".join(rng.choices(task_words, k=TOKENS)), f" {rng.choice(task_words)}")
            for _ in range(PROMPTS)
        ]
        tasks.append(hw.Task(f"task {number}", examples, held_out=range(PROMPTS // 5)))
    return tasks


def reading(model: Model, tasks: list[EncodedTask]) -> list[Row]:
    examples = [e for task in tasks for e in task.examples][
        :: len(tasks)
    ]  # an eighth of them a round, of every task: the ratio is the same
    part = EncodedTask("part", None, tuple(examples), (), 0)

    @torch.inference_mode()
    def plain() -> None:
        for batch in batches(examples, model, None):
            model.module(input_ids=batch.ids, use_cache=False)

    ratios = against(
        plain, {"read": lambda: read(Job(model, (part,), None, Probe()))}, rounds=ROUNDS
    )
    return [
        Row(
            "probe: reading heads of 8 x 60 prompts / plain forwards of them",
            ratios["read"],
            at_most=1.5,
        )
    ]


def training(model: Model, tasks: list[EncodedTask]) -> list[Row]:
    """The probe and its control as hw.score fits them; seconds over what is promised."""
    z, _ = read(Job(model, tuple(tasks), None, Probe()))
    (split,) = splits(tasks, Probe(), 0)
    labels = np.repeat(np.arange(TASKS), PROMPTS)
    y, mixed = torch.tensor(labels), torch.tensor(np.random.default_rng(0).permutation(labels))
    parts = split.train_and_validation(0.2, 0)
    train, validation = (torch.tensor(part) for part in parts)
    how = Probe().training()
    took, epochs = [], 0

    def both() -> None:
        nonlocal epochs
        x = Features.of(z).standardised(train)
        _, epochs = fit(x, y, train, validation, TASKS, how, 0)
        fit(
            x,
            mixed,
            train,
            validation[:0],
            TASKS,
            Training(how.units, how.hidden, how.lr, epochs, how.minibatch),
            0,
        )

    for _ in range(ROUNDS):
        took.append(seconds(both))
    print(
        f"The probe of {TASKS} x {PROMPTS} examples and its control train in "
        f"{', '.join(f'{s:.1f}' for s in took)} s ({epochs} epochs each).\n"
    )
    return [
        Row(
            f"probe: training it and its control / {SECONDS:.0f} s",
            [s / SECONDS for s in took],
            at_most=1.0,
        )
    ]
