"""The smallest composition that shows a fault, and which faults are the same."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tests.fuzz.property import Verdict, examine
from tests.support.compositions import Composition


def kind(verdict: Verdict) -> str:
    """What sort of fault it is, without its numbers."""
    if "by definition" in verdict.text:
        return "wrong numbers"
    return re.sub(r"[\d\[\]., ]+", " ", verdict.text)[:70].strip()


def smallest(composition: Composition, fault: Verdict) -> Composition:
    """The composition with everything left out that the fault does not need."""
    shrinking = True
    while shrinking:
        shrinking = False
        for candidate in composition.smaller():
            again = examine(candidate, [fault.check])
            if any(v.kind == "fault" and kind(v) == kind(fault) for v in again):
                composition, shrinking = candidate, True
                break
    return composition


@dataclass
class Faults:
    """The smallest compositions of faults by check, kind and what the composition does."""

    known: dict[tuple[str, str, frozenset[str]], Composition] = field(default_factory=dict)

    def smallest(self, composition: Composition, fault: Verdict) -> Composition:
        """The smallest composition that shows the fault; one found before, where it would do."""
        does = actions(composition)
        for (check, sort, needed), least in self.known.items():
            if check == fault.check and sort == kind(fault) and needed and needed <= does:
                return least
        least = smallest(composition, fault)
        return self.known.setdefault((fault.check, kind(fault), actions(least)), least)


def actions(composition: Composition) -> frozenset[str]:
    """What the ingredients do, wherever they are: ``hook:pre:block.1:steer`` is ``hook steer``."""
    return frozenset(_action(text) for text in composition.ingredients)


def _action(ingredient: str) -> str:
    name, *arguments = ingredient.split(":")
    if name in ("adapter", "quantise"):
        return f"{name} {arguments[0]}"
    return f"{name} {arguments[-1]}" if arguments else name
