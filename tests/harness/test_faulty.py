"""The faulty object store: each fault affects the calls it names, and no others."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.support.faulty import CallClass, CallRecord, Fault, FaultyStore
from tests.support.stores import open_objects

from omnigraph.errors import (
    ObjectExists,
    ObjectNotFound,
    OutcomeUnknown,
    StorageFailure,
    StorageFull,
)
from omnigraph.storage.locations import parse_location
from omnigraph.storage.objects.store import ObjectStore

CALLS: dict[CallClass, Callable[[ObjectStore], object]] = {
    "put": lambda store: store.put("a", b"new"),
    "put_if_absent": lambda store: store.put_if_absent("b", b"new"),
    "get": lambda store: store.get("a"),
    "exists": lambda store: store.exists("a"),
    "list": lambda store: store.list(),
    "delete": lambda store: store.delete("a"),
    "replace": lambda store: store.replace("a", b"new", store.get_tagged("a")[1]),
    "rename": lambda store: store.rename("a", "b"),
}
CHANGES: list[CallClass] = ["put", "put_if_absent", "delete", "replace", "rename"]


@pytest.fixture
def store() -> FaultyStore:
    inner = open_objects(parse_location(f"memory://{uuid.uuid4().hex}"))
    inner.put("a", b"old")
    return FaultyStore(inner)


def content(store: FaultyStore) -> dict[str, bytes]:
    return {info.path: store.inner.get(info.path) for info in store.inner.list()}


def is_failure(error: type[StorageFailure]) -> Callable[[StorageFailure], bool]:
    return lambda caught: type(caught) is error


@pytest.mark.parametrize("call", CALLS)
def test_without_rules_it_is_the_inner_store(store: FaultyStore, call: CallClass) -> None:
    CALLS[call](store)
    assert store.log[-1].call == call
    assert store.log[-1].effective


@pytest.mark.parametrize("call", CALLS)
def test_a_failing_call_has_no_effect_and_says_so(store: FaultyStore, call: CallClass) -> None:
    store.inject(Fault.fail(call))
    with pytest.raises(StorageFailure, match="injected") as caught:
        CALLS[call](store)
    assert is_failure(StorageFailure)(caught.value)
    assert content(store) == {"a": b"old"}
    assert CallRecord(call, store.log[-1].path, False, "storage_failure") == store.log[-1]


@pytest.mark.parametrize("call", CHANGES)
def test_a_lost_answer_leaves_the_effect(store: FaultyStore, call: CallClass) -> None:
    store.inject(Fault.lose_answer(call))
    with pytest.raises(StorageFailure) as caught:
        CALLS[call](store)
    expected = StorageFailure if call == "delete" else OutcomeUnknown
    assert is_failure(expected)(caught.value)
    assert content(store) != {"a": b"old"}
    assert store.log[-1].effective


@pytest.mark.parametrize("call", CHANGES)
def test_a_time_out_before_the_effect_sounds_the_same(store: FaultyStore, call: CallClass) -> None:
    store.inject(Fault.time_out(call))
    with pytest.raises(StorageFailure) as caught:
        CALLS[call](store)
    expected = StorageFailure if call == "delete" else OutcomeUnknown
    assert is_failure(expected)(caught.value)
    assert content(store) == {"a": b"old"}


def test_any_typed_error_can_be_raised(store: FaultyStore) -> None:
    store.inject(Fault.fail("put", error=StorageFull))
    with pytest.raises(StorageFull):
        store.put("x", b"")


def test_the_nth_matching_call_fails_and_the_others_do_not(store: FaultyStore) -> None:
    store.inject(Fault.fail("put", "d/*", skip=2, times=2))
    outcomes = []
    for number in range(6):
        store.put("other", b"")
        try:
            store.put(f"d/{number}", b"")
            outcomes.append(True)
        except StorageFailure:
            outcomes.append(False)
    assert outcomes == [True, True, False, False, True, True]


def test_a_rule_without_end_lasts_until_it_is_cleared(store: FaultyStore) -> None:
    store.inject(Fault.fail("*", times=None))
    for _ in range(3):
        with pytest.raises(StorageFailure):
            store.list()
    store.clear()
    assert [info.path for info in store.list()] == ["a"]


def test_the_first_rule_that_acts_acts_alone(store: FaultyStore) -> None:
    store.inject(Fault.fail("get", error=StorageFull), Fault.fail("get", skip=1))
    with pytest.raises(StorageFull):
        store.get("a")
    with pytest.raises(StorageFailure) as caught:
        store.get("a")
    assert is_failure(StorageFailure)(caught.value)
    assert store.get("a") == b"old"


def test_a_delayed_call_still_happens(store: FaultyStore) -> None:
    store.inject(Fault.delay("put", delay_ms=1))
    store.put("a", b"late")
    assert store.get("a") == b"late"


@pytest.mark.parametrize(("when", "expected"), [("before", b"old"), ("after", b"new")])
def test_a_held_call_waits_on_its_side_of_the_effect(
    store: FaultyStore, when: str, expected: bytes
) -> None:
    store.inject(Fault.hold("put", when="before" if when == "before" else "after"))
    with ThreadPoolExecutor(1) as pool:
        writer = pool.submit(store.put, "a", b"new")
        store.wait_until_held()
        assert store.inner.get("a") == expected
        assert not writer.done()
        store.release()
        writer.result(30)
    assert store.inner.get("a") == b"new"


def test_errors_of_the_inner_store_pass_through_and_are_on_record(store: FaultyStore) -> None:
    with pytest.raises(ObjectExists):
        store.put_if_absent("a", b"")
    with pytest.raises(ObjectNotFound):
        store.get("none")
    assert store.log == [
        CallRecord("put_if_absent", "a", False, "object_exists"),
        CallRecord("get", "none", False, "object_not_found"),
    ]


def test_calls_are_counted_by_class_and_path(store: FaultyStore) -> None:
    store.put("d/1", b"")
    store.put("d/2", b"")
    store.put("e", b"")
    store.get("d/1")
    store.get_tagged("d/1")
    store.delete_prefix("d")
    assert store.counts() == {"put": 3, "get": 2, "delete": 1}
    assert store.counts("d/*") == {"put": 2, "get": 2}
    store.reset_log()
    assert store.counts() == {}
