"""When pictures of a run and its progress messages are due, by a clock that the test sets."""

from __future__ import annotations

import itertools

import pytest

from headwidget.live import pacer
from headwidget.live.pacer import Pacer


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


def send(pace: Pacer, clock: Clock, seconds: float = 0.0, *, free: bool = False) -> None:
    with pace.picture(free=free):
        clock.advance(seconds)


def seconds_until_due(pace: Pacer, clock: Clock) -> float:
    """How long the next picture has to wait, to the hundredth of a second."""
    waited = 0.0
    while not pace.due():
        clock.advance(0.01)
        waited += 0.01
        assert waited < 60, "never due"
    return waited


def test_the_first_picture_is_due_at_once() -> None:
    assert Pacer(clock=Clock()).due()


def test_a_painted_picture_is_followed_sooner_than_one_that_was_not_painted() -> None:
    clock = Clock()
    pace = Pacer(clock=clock)
    send(pace, clock)
    assert seconds_until_due(pace, clock) == pytest.approx(pacer.UNPAINTED_GAP, abs=0.02)
    send(pace, clock)
    pace.painted(1)
    assert seconds_until_due(pace, clock) == pytest.approx(pacer.PAINTED_GAP, abs=0.02)


def test_pictures_take_no_more_than_their_share_of_a_run() -> None:
    clock = Clock()
    pace = Pacer(overhead=0.02, clock=clock)
    send(pace, clock, 0.05)
    pace.painted(30)
    cost = 0.05 + 0.03 + 0.02
    assert seconds_until_due(pace, clock) == pytest.approx(cost / pacer.SHARE, abs=0.02)


def run_for(pace: Pacer, clock: Clock, seconds: float, chunk: float, cost: float) -> list[float]:
    """The times of the pictures of a run in which chunks land every ``chunk`` seconds."""
    pace.start_run()
    began, sent = clock.now, []
    while clock.now - began < seconds:
        clock.advance(chunk)
        if pace.due():
            sent.append(clock.now - began)
            send(pace, clock, cost)
            pace.painted(1)
    return sent


@pytest.mark.parametrize("chunk", [0.02, 0.45, 0.8])
@pytest.mark.parametrize("cost", [0.003, 0.03, 0.1])
def test_at_first_there_is_a_picture_every_second_and_a_minutes_pictures_take_a_twentieth(
    chunk: float, cost: float
) -> None:
    clock = Clock()
    sent = run_for(Pacer(clock=clock), clock, 60, chunk, cost)
    young = [at for at in sent if at < pacer.YOUNG]
    assert max(b - a for a, b in zip([0.0, *young], young)) < 1.0 + cost
    assert len(sent) * cost <= 0.05 * 60 + cost


def test_a_free_picture_is_not_held_against_the_run() -> None:
    clock = Clock()
    pace = Pacer(clock=clock)
    send(pace, clock, 5.0, free=True)
    pace.painted(None)
    assert seconds_until_due(pace, clock) == pytest.approx(pacer.PAINTED_GAP, abs=0.02)


@pytest.mark.parametrize("took", [None, "fast", -3, float("nan"), [], 0])
def test_a_time_that_makes_no_sense_counts_as_none(took: object) -> None:
    clock = Clock()
    pace = Pacer(clock=clock)
    send(pace, clock)
    pace.painted(took)
    assert seconds_until_due(pace, clock) == pytest.approx(pacer.PAINTED_GAP, abs=0.02)


def test_a_browser_that_was_hidden_is_not_believed_to_have_worked_all_the_time() -> None:
    clock = Clock()
    pace = Pacer(clock=clock)
    send(pace, clock)
    pace.painted(60_000)
    longest = pacer.LONGEST_PAINT / pacer.SHARE
    assert seconds_until_due(pace, clock) == pytest.approx(longest, abs=0.02)


def test_a_picture_that_failed_does_not_move_the_next() -> None:
    clock = Clock()
    pace = Pacer(clock=clock)
    with pytest.raises(RuntimeError), pace.picture():
        raise RuntimeError
    assert pace.due()


def test_progress_is_told_at_most_every_half_second_and_at_once_in_a_new_run() -> None:
    clock = Clock()
    pace = Pacer(clock=clock)
    pace.start_run()
    told = 0
    for _ in range(100):
        told += pace.progress_due()
        clock.advance(0.026)  # 2.6 seconds in all
    assert told == 5
    pace.start_run()
    assert pace.progress_due() and not pace.progress_due()


def test_the_overhead_counts_where_a_few_cores_run_the_model_too() -> None:
    few, more = pacer.FEW_CORES, pacer.FEW_CORES + 1
    assert pacer.overhead("cpu", few) == pacer.OVERHEAD
    assert pacer.overhead("cpu", more) == pacer.overhead("cuda", few) == 0


def test_a_picture_is_sent_early_where_the_next_scores_would_come_late() -> None:
    clock = Clock()
    pace = Pacer(overhead=0.1, clock=clock)
    pace.start_run()
    sent = []
    for _ in range(12):  # scores land every 0.45 s: two of these are too long to wait
        if pace.due():
            send(pace, clock)
            pace.painted(1)
            sent.append(clock.now)
        clock.advance(0.45)
    apart = [after - before for before, after in itertools.pairwise(sent)]
    assert max(apart) <= pacer.YOUNG_GAP
