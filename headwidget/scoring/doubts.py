"""Why a task's scores should not be believed: sentences for its map, its card and its file."""

from __future__ import annotations

from collections.abc import Sequence

from headwidget.scores import chance
from headwidget.scores.record import TaskRecord
from headwidget.tasks import Example

NEAR_ZERO = 0.05
"""The largest share of right answers that is called near zero."""
LEAST_ASKED = 2
"""With fewer prompts a wrong answer says nothing of the task."""
FAIR = 0.25
"""So few right answers are told without a cause only where this accuracy seldom gives them."""


def near_zero(accuracy: TaskRecord) -> bool:
    """Is the model's first choice right on (nearly) none of a task's prompts?

    >>> near_zero(TaskRecord(asked=8, accuracy=0.0)), near_zero(TaskRecord(asked=8, accuracy=0.5))
    (True, False)
    """
    if accuracy.accuracy is None or (accuracy.asked or 0) < LEAST_ASKED:
        return False
    return accuracy.accuracy <= NEAR_ZERO


def few_right(accuracy: TaskRecord, examples: Sequence[Example], *, continues: bool) -> str | None:
    """A sentence where (nearly) no answer is right, with the likely cause.

    ``continues``: the answer follows the prompt in one text. None where enough are right, and
    where no cause is seen and the prompts are too few to tell.

    >>> capitals = [Example("The capital of France is", "Paris")]
    >>> few_right(TaskRecord(asked=8, accuracy=0.0), capitals, continues=True)
    "The model's first choice is right on 0% of 8 prompts; likely cause: the answers lack \
their leading space (write ' Paris', not 'Paris')."
    """
    if not near_zero(accuracy):
        return None
    assert accuracy.accuracy is not None and accuracy.asked is not None
    right = round(accuracy.accuracy * accuracy.asked)
    cause = _spaces(examples) if continues else None
    if cause is None and not chance.too_few(right, accuracy.asked, FAIR):
        return None
    share = f"{100 * accuracy.accuracy:.0f}% of {accuracy.asked} prompts"
    reason = f"likely cause: {cause}" if cause else "see whether its answers are what would follow"
    return f"The model's first choice is right on {share}; {reason}."


def _spaces(examples: Sequence[Example]) -> str | None:
    """What is wrong with the space between most prompts and their answers; None: nothing."""
    glued = [example for example in examples if _is_glued(example)]
    if 2 * len(glued) > len(examples):
        answer = glued[0].answer
        return f"the answers lack their leading space (write {' ' + answer!r}, not {answer!r})"
    ending = [example for example in examples if example.prompt.endswith(" ")]
    if 2 * len(ending) > len(examples):
        return "the prompts end with a space; it belongs to the front of the answer"
    return None


def _is_glued(example: Example) -> bool:
    """Does a word follow a word without a space, in a script that has spaces?"""
    before, first = example.prompt[-1:], example.answer[:1]
    is_spaced = first.lower() != first.upper() or first.isdigit()  # Chinese has no cases
    return is_spaced and bool(before) and not before.isspace() and before not in "([{\"'`/-_=#"


def no_better_than_chance(accuracy: TaskRecord, consequence: str) -> str | None:
    """A sentence where the model does no better than a coin on the task's foils."""
    if accuracy.beats_foil is None or accuracy.foils is None:
        return None
    return chance.foil_warning(accuracy.beats_foil, accuracy.foils, consequence)
