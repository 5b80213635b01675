"""Scores as other libraries hold them: a pandas frame, an xarray dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headwidget.scores import provenance

if TYPE_CHECKING:
    import pandas
    import xarray

    from headwidget.scores.head_scores import HeadScores


def to_pandas(scores: HeadScores) -> pandas.DataFrame:
    """A tidy frame with a row a score: task, category, run, label, layer, head, score."""
    import pandas as pd

    frames = []
    for task in scores.tasks:
        values = scores.values(task)
        run, row, head = np.indices(values.shape).reshape(3, -1)
        columns = {
            "task": task,
            "category": scores.categories.get(task),
            "run": run,
            "label": np.asarray(scores.runs(task), dtype=object)[run],
            "layer": np.asarray(scores.layers)[row],
            "head": head,
            "score": values.reshape(-1),
        }
        if provenance.sections(scores):
            columns["layer_name"] = np.asarray(provenance.layer_labels(scores))[row]
        frames.append(pd.DataFrame(columns))
    return pd.concat(frames, ignore_index=True)


def to_xarray(scores: HeadScores) -> xarray.Dataset:
    """``score`` (task, run, layer, head) and ``label`` (task, run); what is missing is NaN."""
    try:
        import xarray as xr
    except ImportError as error:
        raise ImportError("to_xarray needs xarray: pip install xarray.") from error
    most_runs = max(len(scores.runs(task)) for task in scores.tasks)
    block = np.full((len(scores.tasks), most_runs, *scores.shape), np.nan, dtype=np.float32)
    labels = np.full((len(scores.tasks), most_runs), "", dtype=object)
    for i, task in enumerate(scores.tasks):
        runs = len(scores.runs(task))
        block[i, :runs] = scores.values(task)
        labels[i, :runs] = scores.runs(task)
    return xr.Dataset(
        {
            "score": (("task", "run", "layer", "head"), block),
            "label": (("task", "run"), labels),
        },
        coords={
            "task": list(scores.tasks),
            "layer": list(scores.layers),
            "head": range(scores.shape[1]),
        },
        attrs={"method": scores.method, "model": scores.record.model or ""},
    )
