"""Each planted anomaly is found under its own name; histories without one are passed."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.history import Append, History, Operation, Outcome
from tests.support.history_checker import check, report
from tests.support.history_rules import Name

OK, FAILED, UNKNOWN = Outcome.OK, Outcome.FAILED, Outcome.UNKNOWN


class Story:
    """Builds a history line by line; every operation takes two ticks of the clock."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []

    def does(self, process="p", outcome=OK, *, read=None, at=None, commit=None, overlaps=0, **add):
        number = len(self.operations)
        appends = tuple(
            Append(key, value)
            for key, values in add.items()
            for value in (values if isinstance(values, tuple) else (values,))
        )
        self.operations.append(
            Operation(
                number,
                process,
                outcome,
                invoked=10 * (number - overlaps) + overlaps,
                completed=10 * number + 5,
                appends=appends,
                read=read or {},
                at=at,
                commit=commit,
            )
        )
        return self

    def ends(self, commits=None, **final):
        chain = None if commits is None else tuple(commits)
        return History(tuple(self.operations), final, chain)


def names(history: History) -> set[Name]:
    return {anomaly.name for anomaly in check(history)}


# -- elements --------------------------------------------------------------------------------------


def test_a_value_that_is_there_twice_is_a_duplicate_element():
    assert names(Story().does(x=1).ends(x=(1, 1))) == {Name.DUPLICATE_ELEMENT}


def test_a_value_nobody_appended_is_a_phantom_element():
    assert names(Story().does(x=1).ends(x=(1, 7))) == {Name.PHANTOM_ELEMENT}


def test_a_read_value_nobody_appended_is_a_phantom_element():
    story = Story().does(x=1).does(read={"x": (1, 7)})
    assert names(story.ends(x=(1,))) == {Name.PHANTOM_ELEMENT}


def test_an_acknowledged_append_that_is_gone_is_a_lost_append():
    assert names(Story().does(x=1).does(x=2).ends(x=(1,))) == {Name.LOST_APPEND}


def test_an_acknowledged_commit_missing_from_the_chain_is_a_lost_append():
    story = Story().does(x=1, commit="c1")
    assert names(story.ends(["c0"], x=(1,))) == {Name.LOST_APPEND}


def test_a_refused_write_in_the_final_state_is_a_resurrected_write():
    assert names(Story().does(outcome=FAILED, x=1).ends(x=(1,))) == {Name.RESURRECTED_WRITE}


def test_a_refused_commit_in_the_chain_is_a_resurrected_write():
    story = Story().does(outcome=FAILED, x=1, commit="c1")
    assert names(story.ends(["c1"])) == {Name.RESURRECTED_WRITE}


def test_half_of_a_write_of_unknown_outcome_is_a_partial_write():
    story = Story().does(outcome=UNKNOWN, x=1, y=2)
    assert names(story.ends(x=(1,), y=())) == {Name.PARTIAL_WRITE}


def test_two_reads_that_disagree_about_the_order_are_an_incompatible_order():
    story = Story().does(x=1).does(x=2, overlaps=1).does(read={"x": (2, 1)})
    assert names(story.ends(x=(1, 2))) == {Name.INCOMPATIBLE_ORDER}


def test_a_list_in_another_order_than_its_commits_is_an_incompatible_order():
    story = Story().does(x=1, commit="c1").does(x=2, commit="c2")
    assert names(story.ends(["c1", "c2"], x=(2, 1))) == {Name.INCOMPATIBLE_ORDER}


def test_one_commit_claimed_by_two_operations_is_a_duplicate_commit():
    story = Story().does(x=1, commit="c1").does(y=2, commit="c1")
    assert names(story.ends(["c1"], x=(1,), y=(2,))) == {Name.DUPLICATE_COMMIT}


# -- reads -----------------------------------------------------------------------------------------


def test_reading_a_write_that_never_committed_is_an_aborted_read():
    story = Story().does(outcome=FAILED, x=1).does(read={"x": (1,)})
    assert names(story.ends(x=())) == {Name.G1A}


def test_reading_a_write_of_a_dead_process_that_was_undone_is_an_aborted_read():
    story = Story().does(outcome=UNKNOWN, x=1).does(read={"x": (1,)})
    assert names(story.ends(x=())) == {Name.G1A}


def test_reading_between_two_appends_of_one_operation_is_an_intermediate_read():
    story = Story().does(x=(1, 2)).does("q", read={"x": (1,)}, overlaps=1)
    assert Name.G1B in names(story.ends(x=(1, 2)))


def test_two_reads_of_one_commit_that_differ_are_a_torn_read():
    story = Story().does("a", x=1).does("b", read={"x": ()}, at="c1", overlaps=1)
    story.does("c", read={"x": (1,)}, at="c1", overlaps=2)
    assert names(story.ends(x=(1,))) == {Name.TORN_READ}


def test_a_read_that_is_not_the_state_of_its_commit_is_a_torn_read():
    story = Story().does("a", x=1, commit="c1").does("b", y=2, commit="c2", overlaps=1)
    story.does("c", read={"x": (), "y": (2,)}, at="c2", overlaps=2)
    assert Name.TORN_READ in names(story.ends(["c1", "c2"], x=(1,), y=(2,)))


def test_a_read_at_a_commit_outside_the_chain_is_a_torn_read():
    story = Story().does(read={"x": ()}, at="elsewhere")
    assert names(story.ends(["c1"], x=())) == {Name.TORN_READ}


def test_a_read_that_misses_what_was_acknowledged_before_it_is_a_stale_read():
    story = Story().does("a", x=1).does("b", read={"x": ()})
    assert names(story.ends(x=(1,))) == {Name.STALE_READ}


def test_a_process_that_sees_a_list_shrink_has_a_non_monotonic_read():
    story = Story().does("a", outcome=UNKNOWN, x=1)
    story.does("b", read={"x": (1,)}).does("b", read={"x": ()})
    assert names(story.ends(x=(1,))) == {Name.NON_MONOTONIC_READ}


# -- updates and cycles ----------------------------------------------------------------------------


def test_two_appends_to_the_same_version_are_a_lost_update():
    story = Story().does("a", read={"x": ()}, x=1).does("b", read={"x": ()}, x=2, overlaps=1)
    assert Name.LOST_UPDATE in names(story.ends(x=(1, 2)))


def test_writes_in_different_orders_on_two_keys_are_a_dirty_write_cycle():
    story = Story().does("a", x=1, y=2).does("b", x=3, y=4, overlaps=1)
    assert names(story.ends(x=(1, 3), y=(4, 2))) == {Name.G0}


def test_two_operations_that_read_each_other_are_a_circular_information_flow():
    story = Story().does("a", read={"y": (2,)}, x=1)
    story.does("b", read={"x": (1,)}, y=2, overlaps=1)
    assert names(story.ends(x=(1,), y=(2,))) == {Name.G1C}


def test_seeing_half_of_another_operation_is_a_read_skew():
    story = Story().does("a", x=1, y=2).does("b", read={"x": (1,), "y": ()}, overlaps=1)
    assert names(story.ends(x=(1,), y=(2,))) == {Name.G_SINGLE}


def test_two_operations_that_miss_each_other_are_an_anti_dependency_cycle():
    story = Story().does("a", read={"y": ()}, x=1).does("b", read={"x": ()}, y=2, overlaps=1)
    assert names(story.ends(x=(1,), y=(2,))) == {Name.G2}


def test_two_readers_that_see_two_writes_in_opposite_orders_are_an_anti_dependency_cycle():
    story = Story().does("a", x=1).does("b", y=2, overlaps=1)
    story.does("c", read={"x": (1,), "y": ()}, overlaps=2)
    story.does("d", read={"x": (), "y": (2,)}, overlaps=3)
    assert names(story.ends(x=(1,), y=(2,))) == {Name.G2}


def test_a_cycle_is_told_with_its_operations_and_keys():
    story = Story().does("a", x=1, y=2).does("b", read={"x": (1,), "y": ()}, overlaps=1)
    (anomaly,) = check(story.ends(x=(1,), y=(2,)))
    assert set(anomaly.operations) == {0, 1}
    assert "-rw y->" in anomaly.message
    assert "-wr x->" in anomaly.message
    assert "G-single" in report([anomaly])


def test_a_value_appended_twice_is_no_history_at_all():
    with pytest.raises(ValueError, match="appended twice"):
        check(Story().does(x=1).does(x=1).ends(x=(1,)))


# -- histories without anomalies -------------------------------------------------------------------


def test_an_unknown_write_may_be_there_or_not():
    assert not check(Story().does(outcome=UNKNOWN, x=1, y=2).ends(x=(1,), y=(2,)))
    assert not check(Story().does(outcome=UNKNOWN, x=1, y=2).ends(x=(), y=()))


def serial_history(seed: int, steps: int, keys: int, processes: int = 6) -> History:
    """What an ideal store would show: operations one after the other, some of them refused."""
    rng = random.Random(seed)
    lists: dict[str, tuple[int, ...]] = {f"k{n}": () for n in range(keys)}
    chain, operations, clock = ["c-init"], [], 0
    for number in range(steps):
        process, outcome = (
            f"p{rng.randrange(processes)}",
            rng.choices([OK, FAILED, UNKNOWN], [8, 1, 1])[0],
        )
        invoked, clock = clock, clock + rng.randrange(1, 4)
        touched = rng.sample(sorted(lists), rng.randrange(1, min(3, keys) + 1))
        reads_all = rng.random() < 0.5
        read = dict(lists) if reads_all else {key: lists[key] for key in touched}
        at, appends, commit = chain[-1], (), None
        if not reads_all:
            appends = tuple(Append(key, number * 10 + n) for n, key in enumerate(touched))
            commit = f"c{number}"
            if outcome is OK or (outcome is UNKNOWN and rng.random() < 0.5):
                chain.append(commit)
                for append in appends:
                    lists[append.key] = (*lists[append.key], append.value)
        operations.append(
            Operation(number, process, outcome, invoked, clock, appends, read, at, commit)
        )
    return History(tuple(operations), lists, tuple(chain))


@given(st.integers(0, 2**32), st.integers(1, 60), st.integers(1, 5))
@settings(max_examples=150, deadline=None)
def test_every_serial_history_passes(seed, steps, keys):
    history = serial_history(seed, steps, keys)
    assert report(check(history)) == ""


@given(st.integers(0, 2**32), st.data())
@settings(max_examples=100, deadline=None)
def test_a_serial_history_with_one_acknowledged_value_removed_never_passes(seed, data):
    history = serial_history(seed, 30, 3)
    acknowledged = [
        (append.key, append.value)
        for operation in history.operations
        if operation.outcome is OK
        for append in operation.appends
    ]
    if not acknowledged:
        return
    key, value = data.draw(st.sampled_from(acknowledged))
    without = tuple(v for v in history.final[key] if v != value)
    changed = History(history.operations, {**history.final, key: without}, history.commits)
    assert Name.LOST_APPEND in names(changed)


@given(st.integers(0, 2**32), st.data())
@settings(max_examples=100, deadline=None)
def test_a_serial_history_with_one_read_from_another_commit_never_passes(seed, data):
    history = serial_history(seed, 30, 3)
    reads = [o for o in history.operations if not o.appends and any(o.read.values())]
    if not reads:
        return
    chosen = data.draw(st.sampled_from(reads))
    key = data.draw(st.sampled_from([k for k, seen in chosen.read.items() if seen]))
    torn = dict(chosen.read) | {key: chosen.read[key][:-1]}
    operations = tuple(
        Operation(o.number, o.process, o.outcome, o.invoked, o.completed, o.appends, torn, o.at)
        if o is chosen
        else o
        for o in history.operations
    )
    assert Name.TORN_READ in names(History(operations, history.final, history.commits))


def test_twenty_thousand_operations_are_checked():
    history = serial_history(seed=7, steps=20_000, keys=40)
    assert report(check(history)) == ""
