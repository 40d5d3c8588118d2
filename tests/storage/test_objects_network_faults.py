"""The object adapter on an S3 store that refuses, fails or loses responses (O-2, F-9)."""

from __future__ import annotations

import socket
import uuid
from collections.abc import Callable

import pytest
from tests.support.s3server import S3Fault, S3Server
from tests.support.stores import open_objects

from omnigraph.errors import (
    ObjectChanged,
    ObjectExists,
    ObjectNotFound,
    OutcomeUnknown,
    PermissionDenied,
    StorageFailure,
    StorageFull,
    UnsupportedLocation,
)
from omnigraph.settings import Settings
from omnigraph.storage.locations import parse_location
from omnigraph.storage.objects.obstore_store import ATTEMPTS_MAX
from omnigraph.storage.objects.store import ObjectStore

pytestmark = pytest.mark.s3


@pytest.fixture
def store(s3: S3Server) -> ObjectStore:
    return connect(s3, f"{s3.create_bucket('faults')}/{uuid.uuid4().hex}")


def connect(s3: S3Server, uri: str) -> ObjectStore:
    location = parse_location(uri)
    return open_objects(location, Settings.from_environment(s3.environment()).storage)


CALLS: dict[str, Callable[[ObjectStore], object]] = {
    "get": lambda store: store.get("a"),
    "exists": lambda store: store.exists("a"),
    "list": lambda store: store.list(),
    "put": lambda store: store.put("a", b""),
    "create": lambda store: store.put_if_absent("b", b""),
    "replace": lambda store: store.replace("a", b"", "tag"),
    "delete": lambda store: store.delete("a"),
    "delete_prefix": lambda store: store.delete_prefix("d"),
    "rename": lambda store: store.rename("a", "b"),
}
every_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())


@every_call
@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_is_never_read_as_absence(
    s3: S3Server, store: ObjectStore, call: Callable[[ObjectStore], object], status: int
) -> None:
    store.put("a", b"kept")
    s3.inject(S3Fault(status=status, times=None))
    with pytest.raises(PermissionDenied):
        call(store)
    s3.clear_faults()
    assert store.get("a") == b"kept"


@every_call
def test_a_missing_bucket_is_never_read_as_a_missing_object(
    s3: S3Server, call: Callable[[ObjectStore], object]
) -> None:
    store = connect(s3, "s3://no-such-bucket/graph")
    with pytest.raises(UnsupportedLocation, match="bucket does not exist") as caught:
        call(store)
    assert "Create the bucket" in caught.value.remedy


def test_one_look_up_asks_for_the_bucket_and_later_ones_do_not(
    s3: S3Server, store: ObjectStore
) -> None:
    assert not store.exists("a")
    s3.reset()
    assert not store.exists("b")
    assert s3.counts() == {"HEAD": 1}


def test_a_full_store_is_a_full_store(s3: S3Server, store: ObjectStore) -> None:
    s3.inject(S3Fault("PUT", status=507, times=None))
    with pytest.raises(StorageFull):
        store.put("a", b"")


@pytest.mark.parametrize("status", [500, 503])
def test_a_stumble_is_overcome(s3: S3Server, store: ObjectStore, status: int) -> None:
    store.put("a", b"one")
    s3.inject(*(S3Fault(kind, status=status) for kind in ("GET", "HEAD", "LIST", "PUT")))
    assert store.get("a") == b"one"
    assert store.exists("a")
    assert [info.path for info in store.list()] == ["a"]
    store.put("a", b"two")
    assert store.get("a") == b"two"


@pytest.mark.parametrize("action", ["status", "drop"])
class TestLostAnswers:
    """The effect happened, the answer did not arrive: the winner must still know that it won."""

    def test_a_claim_is_known_to_be_ours(
        self, s3: S3Server, store: ObjectStore, action: str
    ) -> None:
        s3.inject(S3Fault("PUT", action=action, when="after", status=500))
        store.put_if_absent("claim", b"ours")
        assert store.get("claim") == b"ours"
        with pytest.raises(ObjectExists):
            store.put_if_absent("claim", b"ours")

    def test_a_replace_is_known_to_be_ours(
        self, s3: S3Server, store: ObjectStore, action: str
    ) -> None:
        store.put("a", b"one")
        _, tag = store.get_tagged("a")
        s3.inject(S3Fault("PUT", action=action, when="after", status=500))
        store.replace("a", b"two", tag)
        assert store.get("a") == b"two"

    def test_a_claim_that_never_arrived_goes_to_whoever_is_there(
        self, s3: S3Server, store: ObjectStore, action: str
    ) -> None:
        store.put_if_absent("claim", b"theirs")
        s3.inject(S3Fault("PUT", action=action, status=500))
        with pytest.raises(ObjectExists):
            store.put_if_absent("claim", b"ours")
        assert store.get("claim") == b"theirs"

    def test_a_replace_that_may_have_been_overwritten_is_reported_as_unknown(
        self, s3: S3Server, store: ObjectStore, action: str
    ) -> None:
        store.put("a", b"one")
        _, tag = store.get_tagged("a")
        store.put("a", b"theirs")
        s3.inject(S3Fault("PUT", action=action, status=500))
        with pytest.raises(OutcomeUnknown):
            store.replace("a", b"ours", tag)

    def test_a_write_never_answered_but_done_is_found_to_be_done(
        self, s3: S3Server, store: ObjectStore, action: str
    ) -> None:
        s3.inject(S3Fault("PUT", action=action, when="after", status=500, times=None))
        store.put("a", b"one")
        assert store.get("a") == b"one"


def test_a_store_that_never_answers_ends_in_outcome_unknown_after_bounded_tries(
    s3: S3Server, store: ObjectStore
) -> None:
    s3.inject(S3Fault("PUT", status=503, times=None))
    s3.reset()
    with pytest.raises(OutcomeUnknown) as caught:
        store.put_if_absent("a", b"")
    assert caught.value.details == {"object": "a"}
    assert s3.counts()["PUT"] == ATTEMPTS_MAX
    s3.clear_faults()
    assert not store.exists("a")
    store.put_if_absent("a", b"the same store works again")


def test_a_read_that_never_succeeds_is_a_plain_failure(s3: S3Server, store: ObjectStore) -> None:
    store.put("a", b"one")
    s3.inject(S3Fault("GET", status=500, times=None))
    s3.reset()
    with pytest.raises(StorageFailure) as caught:
        store.get("a")
    assert caught.value.code == "storage_failure"
    assert caught.value.retryable
    assert s3.counts()["GET"] == ATTEMPTS_MAX


def test_a_listing_that_fails_is_loud(s3: S3Server, store: ObjectStore) -> None:
    s3.inject(S3Fault("LIST", action="drop", times=None))
    with pytest.raises(StorageFailure):
        store.list()


def test_a_request_that_was_never_sent_did_not_happen() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        server = S3Server(unused.getsockname()[1])
        store = connect(server, "s3://bucket/graph")
        with pytest.raises(StorageFailure) as caught:
            store.put_if_absent("a", b"")
    assert caught.value.code == "storage_failure"


def test_a_conflict_with_a_delete_is_tried_again(s3: S3Server, store: ObjectStore) -> None:
    s3.inject(S3Fault("PUT", status=409))
    store.put_if_absent("a", b"ours")
    assert store.get("a") == b"ours"


def test_two_stores_with_the_same_content_have_one_winner(s3: S3Server, store: ObjectStore) -> None:
    """The claim, not the content, says whose an object is."""
    store.put_if_absent("claim", b"same")
    other = connect(s3, store.location.uri)
    s3.inject(S3Fault("PUT", status=500))
    with pytest.raises(ObjectExists):
        other.put_if_absent("claim", b"same")


def test_replace_after_a_delete_is_a_lost_race(store: ObjectStore) -> None:
    store.put("a", b"one")
    _, tag = store.get_tagged("a")
    store.delete("a")
    with pytest.raises(ObjectChanged):
        store.replace("a", b"two", tag)
    with pytest.raises(ObjectNotFound):
        store.get("a")
