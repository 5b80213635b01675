"""Loading a model whose family no table knows: time over that of loading it without headwidget."""

from __future__ import annotations

import time
from unittest import mock

from benchmarks.timing import Row

ROUNDS = 5


def rows() -> list[Row]:
    return [Row("hw.load of an unknown family / transformers alone", ratios(), at_most=1.5)]


def ratios() -> list[float]:
    """The embedded model's folder, its family taken out of the table, in turn both ways."""
    import transformers

    import headwidget as hw
    from headwidget.models import embedded, families

    folder = embedded.folder()
    unknown = {name: family for name, family in families.FAMILIES.items() if name != "llama"}
    found = []
    for number in range(ROUNDS + 1):
        start = time.perf_counter()
        transformers.AutoModelForCausalLM.from_pretrained(folder, dtype="float32").eval()
        transformers.AutoTokenizer.from_pretrained(folder)
        alone = time.perf_counter() - start
        with mock.patch.dict(families.FAMILIES, unknown, clear=True):
            start = time.perf_counter()
            model = hw.load(folder)
            ours = time.perf_counter() - start
        assert not model.family.table
        if number:  # the first round reads the files
            found.append(ours / alone)
    return found
