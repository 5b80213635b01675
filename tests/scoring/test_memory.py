"""Out of memory: told from other errors, and answered with half the batch."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from headwidget.scoring.memory import halving, out_of_memory


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (torch.OutOfMemoryError("CUDA"), True),
        (MemoryError(), True),
        (RuntimeError("MPS backend out of memory"), True),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), True),
        (RuntimeError("shapes do not match"), False),
        (ValueError("x"), False),
    ],
)
def test_memory_that_ran_out_is_told_from_other_errors(error: Exception, told: bool) -> None:
    assert out_of_memory(error) is told


def test_a_batch_is_halved_until_it_fits_and_what_landed_stays() -> None:
    sizes: list[int | None] = []

    def run(size: int | None) -> Iterator[int | None]:
        sizes.append(size)
        yield size
        if size is None or size > 2:
            raise MemoryError

    halved: list[int] = []
    assert list(halving(run, None, usual=lambda: 10, halved=halved.append)) == [None, 5, 2]
    assert sizes == [None, 5, 2] and halved == [5, 2]


@pytest.mark.parametrize("error", [MemoryError("one prompt is too much"), RuntimeError("a bug")])
def test_what_half_a_batch_cannot_mend_is_raised(error: Exception) -> None:
    tried: list[int | None] = []

    def run(size: int | None) -> Iterator[int]:
        tried.append(size)
        raise error
        yield

    with pytest.raises(type(error), match=str(error)):
        list(halving(run, 2))
    assert tried == ([2, 1] if isinstance(error, MemoryError) else [2])
