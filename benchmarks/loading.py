"""Loading a model whose family no table knows: time over that of loading it without headwidget.

As a user loads it: in a new process, from nothing imported to a model that can answer. Also,
without a promise, once everything is imported and the files are in memory: transformers then
only maps the weights, in less time than two forwards take, and the proof takes four.
"""

from __future__ import annotations

import subprocess
import sys
from unittest import mock

from benchmarks.timing import Row, against

ALONE = """
import transformers
transformers.AutoModelForCausalLM.from_pretrained({folder!r}, dtype="float32").eval()
transformers.AutoTokenizer.from_pretrained({folder!r})
"""
OURS = """
import headwidget as hw
from headwidget.models import families
del families.FAMILIES["llama"]
assert not hw.load({folder!r}).family.table
"""
ROUNDS = 5


def rows() -> list[Row]:
    from headwidget.models import embedded

    folder = str(embedded.folder())
    new, warm = _in_new_processes(folder), _in_this_process(folder)
    return [
        Row("hw.load of an unknown family / transformers alone, new process", new, at_most=1.5),
        Row("the same, everything imported and in memory", warm),
    ]


def _in_new_processes(folder: str) -> list[float]:
    def run(code: str) -> None:
        subprocess.run([sys.executable, "-c", code.format(folder=folder)], check=True)

    ratios = against(lambda: run(ALONE), {"ours": lambda: run(OURS)}, ROUNDS)
    return ratios["ours"]


def _in_this_process(folder: str) -> list[float]:
    import transformers

    import headwidget as hw
    from headwidget.models import families

    def alone() -> None:
        transformers.AutoModelForCausalLM.from_pretrained(folder, dtype="float32").eval()
        transformers.AutoTokenizer.from_pretrained(folder)

    def ours() -> None:
        assert not hw.load(folder).family.table

    unknown = {name: family for name, family in families.FAMILIES.items() if name != "llama"}
    with mock.patch.dict(families.FAMILIES, unknown, clear=True):
        return against(alone, {"ours": ours}, ROUNDS)["ours"]
