"""Every setting: what it takes, as what it is kept, and the sentence a wrong value gets."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from headwidget.display.scales import percentile
from headwidget.display.settings import CHOICES, NAMES, START, check, selected, settings
from headwidget.scores import HeadScores

SCORES = HeadScores.from_arrays(
    {"copy": np.zeros((2, 3, 4)), "a, b": np.zeros((3, 4))}, method="mine", layers=[2, 5, 9]
)


class Odd:
    """Something that is no number, no text and not hashable."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return False

    def __repr__(self) -> str:
        return "<odd>"


WRONG = [
    *(
        (name, value, rf"^{name} .* is not known; use '?\w+'? or ")
        for name in CHOICES
        for value in ("gone", "", 1, True, ["y"], Odd(), {"a": 1})
    ),
    *(
        (name, None, rf"^{name} None is not known; use ")
        for name in ("view", "rule", "sign", "reduction")
    ),
    *(
        ("tasks", value, r"^tasks is a list of task names; got ")
        for value in (None, "copy", 3, np.array(3), Odd())
    ),
    *(
        ("tasks", [value], r"^no task .* in these scores; they have 'copy', 'a, b'\.$")
        for value in ("gone", None, 1, ["copy"], Odd())
    ),
    ("tasks", ["copy", "a, b", "copy"], r"^tasks names 'copy' twice\.$"),
    *(
        ("task", value, r"^no task .* in these scores; they have 'copy', 'a, b'\.$")
        for value in ("gone", "", 0, ["copy"], Odd())
    ),
    *(
        ("threshold", value, r"^threshold is a finite number, or None for no threshold; got .+\.$")
        for value in (
            "0.5",
            True,
            float("nan"),
            float("inf"),
            -np.inf,
            10**400,
            1j,
            Decimal("0.5"),
            [0.5],
            np.array([0.5]),
            Odd(),
        )
    ),
    *(
        (
            "agreement",
            value,
            r"^agreement is a fraction of the runs, from 0 \(any\) to 1 \(always\); got .+\.$",
        )
        for value in (
            None,
            "1",
            True,
            -0.001,
            1.001,
            float("nan"),
            float("inf"),
            10**400,
            [1],
            Odd(),
        )
    ),
    *(
        (
            "cap",
            value,
            r"^cap is a number above 0, a percentile such as '99%', or None to choose one; "
            r"got .+\.$",
        )
        for value in (
            0,
            -1.0,
            True,
            "99",
            "%",
            "0%",
            "100.1%",
            "-5%",
            "1e1%",
            "nan%",
            "inf",
            "5%%",
            "",
            float("nan"),
            float("inf"),
            10**400,
            ["99%"],
            Odd(),
        )
    ),
    *(
        (
            "cap",
            value,
            r"^cap is a score, which float32 holds from 1\.4e-45 to 3\.4e\+38; got .+\.$",
        )
        for value in (5e-324, 1e39, 10**300)
    ),
    ("cap", "٩٩%", "^cap is a number above 0"),  # digits that the page cannot read
    *(
        (
            "columns",
            value,
            r"^columns is a whole number, 1 or more, or None to choose by width; got .+\.$",
        )
        for value in (0, -3, 1.0, 2.5, True, "3", float("nan"), [1], Odd(), 2**53, 10**400)
    ),
    *(
        ("isolated", value, r"^isolated is the name of an entry of the legend, or None; got .+\.$")
        for value in (0, True, ["a"], Odd())
    ),
]


@pytest.mark.parametrize(
    ("name", "value", "sentence"), WRONG, ids=[f"{name} {value!r}"[:40] for name, value, _ in WRONG]
)
def test_a_wrong_value_gets_its_sentence(name: str, value: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence) as alone:
        check(SCORES, name, value)
    with pytest.raises(ValueError, match=sentence):
        settings(SCORES, **{name: value})
    assert str(alone.value).endswith(".")


RIGHT: list[tuple[str, Any, Any]] = [
    *((name, value, value) for name, values in CHOICES.items() for value in values),
    ("tasks", ("a, b",), ["a, b"]),
    ("tasks", [], []),
    ("tasks", iter(["a, b", "copy"]), ["a, b", "copy"]),
    ("task", None, None),
    ("task", "a, b", "a, b"),
    ("threshold", None, None),
    ("threshold", -3, -3.0),
    ("threshold", np.float32(0.5), 0.5),
    ("threshold", Fraction(1, 4), 0.25),
    ("threshold", 1e300, 1e300),
    ("agreement", 0, 0.0),
    ("agreement", np.int64(1), 1.0),
    ("cap", None, None),
    ("cap", 3, 3.0),
    ("cap", " 99.5 % ", "99.5%"),
    ("cap", "100%", "100%"),
    ("cap", "0.00001%", "0.00001%"),
    ("columns", None, None),
    ("columns", np.int64(3), 3),
    ("isolated", None, None),
    ("isolated", "2 categories", "2 categories"),
]


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    RIGHT,
    ids=[f"{name} {value!r}".split(" object at ")[0][:40] for name, value, _ in RIGHT],
)
def test_a_right_value_is_kept_and_stays_as_it_is_when_checked_again(
    name: str, value: Any, kept: Any
) -> None:
    found = check(SCORES, name, value)
    assert (found, type(found)) == (kept, type(kept))
    assert check(SCORES, name, found) == kept
    again = getattr(settings(SCORES, **{name: kept}), name)
    assert (list(again) if name == "tasks" else again) == kept


def test_every_setting_is_checked() -> None:
    assert {name for name, *_ in WRONG} == {name for name, *_ in RIGHT} == set(NAMES)


def test_what_is_not_given_is_as_in_a_new_explorer() -> None:
    assert settings(SCORES).tasks == ("copy", "a, b")
    for rule, start in START.items():
        assert settings(SCORES, rule=rule).threshold == start
        assert settings(SCORES, rule=rule, threshold=None).threshold is None


def test_a_setting_that_does_not_exist_is_named_with_those_that_do() -> None:
    with pytest.raises(
        TypeError,
        match=r"^there is no setting 'colour', 'n'; the settings are view, tasks, .*, isolated\.$",
    ):
        settings(SCORES, colour="red", view="tasks", n=1)


@pytest.mark.parametrize(("cap", "at"), [(None, 99.5), ("90%", 90.0), ("0.1%", 0.1), (3.0, 99.5)])
def test_a_cap_is_a_percentile(cap: float | str | None, at: float) -> None:
    assert percentile(cap) == at


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        *(
            (value, r"^selected is a list of \[layer, head\]; got ")
            for value in (None, "2 1", 5, np.array(3), Odd())
        ),
        *(
            ([value], r"^selected is a list of \[layer, head\], two whole numbers each; got ")
            for value in (2, "21", [2], [2, 1, 0], [2.0, 1], [None, 1], [2, True], Odd())
        ),
        *(
            (
                [[2, 0], list(value)],
                rf"^there is no head \[{value[0]}, {value[1]}\] in these scores: "
                r"they have 3 layers \(2 to 9\) of 4 heads\.$",
            )
            for value in ((0, 0), (3, 1), (2, 4), (2, -1), (10**30, 0))
        ),
    ],
)
def test_a_selection_that_is_none_gets_its_sentence(value: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        selected(SCORES, value)


def test_a_selection_has_each_head_once_in_order() -> None:
    assert selected(SCORES, np.array([[9, 3], [2, 0], [9, 3]])) == [[9, 3], [2, 0]]
    assert selected(SCORES, [(5, np.int64(1))]) == [[5, 1]]
    assert selected(SCORES, []) == []
