"""Pins the behaviour of obstore that the object adapter relies on.

Some of these guard texts, because obstore leaves the error untyped; some guard traps that the
adapter works around, so that the work-around goes when the trap does.
"""

from __future__ import annotations

import socket
from pathlib import Path

import obstore
import pytest
from obstore.exceptions import AlreadyExistsError, GenericError, PermissionDeniedError
from obstore.store import LocalStore, MemoryStore, S3Store
from tests.support.s3server import S3Fault, S3Server


def s3_client(s3: S3Server, bucket: str = "guards") -> S3Store:
    return S3Store(
        bucket,
        config={
            "aws_access_key_id": "test",
            "aws_secret_access_key": "test",
            "aws_region": "us-east-1",
            "aws_endpoint": s3.endpoint,
        },
        client_options={"allow_http": "true"},
        retry_config={"max_retries": 0},
    )


class TestLocal:
    def test_an_untyped_error_ends_with_the_number_of_the_system(self, tmp_path: Path) -> None:
        store = LocalStore()
        obstore.put(store, f"{tmp_path}/a".lstrip("/"), b"")
        with pytest.raises(GenericError) as caught:
            obstore.put(store, f"{tmp_path}/a/b".lstrip("/"), b"")
        text = str(caught.value).partition("\n\nDebug source")[0]
        assert text.startswith("Generic LocalFileSystem error")
        assert text.endswith("(os error 20)")

    def test_there_is_no_conditional_replace(self, tmp_path: Path) -> None:
        """When there is one, the lock in ``local_files`` may go."""
        store = LocalStore(prefix=str(tmp_path))
        obstore.put(store, "a", b"")
        with pytest.raises(NotImplementedError):
            obstore.put(store, "a", b"", mode={"e_tag": "x"})

    def test_names_of_files_in_the_making_are_reserved_and_hidden(self, tmp_path: Path) -> None:
        store = LocalStore(prefix=str(tmp_path))
        with pytest.raises(GenericError, match="not supported"):
            obstore.put(store, "a#1", b"")
        (tmp_path / "b#0").touch()
        assert list(obstore.list(store)) == []

    def test_a_directory_looks_like_an_existing_object_to_an_exclusive_create(
        self, tmp_path: Path
    ) -> None:
        (tmp_path / "a").mkdir()
        with pytest.raises(AlreadyExistsError):
            obstore.put(LocalStore(prefix=str(tmp_path)), "a", b"", mode="create")

    def test_deleting_a_missing_object_raises(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            obstore.delete(LocalStore(prefix=str(tmp_path)), "a")


def test_renaming_an_object_onto_itself_deletes_it() -> None:
    store = MemoryStore()
    obstore.put(store, "a", b"")
    obstore.rename(store, "a", "a")
    with pytest.raises(FileNotFoundError):
        obstore.head(store, "a")


@pytest.mark.s3
class TestNetwork:
    def test_a_failing_list_is_untyped_and_carries_the_status(self, s3: S3Server) -> None:
        s3.create_bucket("guards")
        s3.inject(S3Fault("LIST", status=403))
        with pytest.raises(GenericError, match="status code: 403"):
            list(obstore.list(s3_client(s3)))

    def test_a_refused_read_is_typed(self, s3: S3Server) -> None:
        s3.create_bucket("guards")
        s3.inject(S3Fault("GET", status=403))
        with pytest.raises(PermissionDeniedError):
            obstore.get(s3_client(s3), "a")

    def test_a_missing_bucket_looks_like_a_missing_object(self, s3: S3Server) -> None:
        with pytest.raises(FileNotFoundError, match="<Code>NoSuchBucket</Code>"):
            obstore.get(s3_client(s3, "no-such-bucket"), "a")
        with pytest.raises(FileNotFoundError):
            obstore.head(s3_client(s3, "no-such-bucket"), "a")

    def test_a_conflict_looks_like_an_existing_object(self, s3: S3Server) -> None:
        s3.create_bucket("guards")
        s3.inject(S3Fault("PUT", status=409))
        with pytest.raises(AlreadyExistsError):
            obstore.put(s3_client(s3), "none", b"", mode="create")

    def test_a_request_that_was_never_sent_says_so(self) -> None:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            client = s3_client(S3Server(unused.getsockname()[1]))
            with pytest.raises(GenericError, match=r"kind: Connect\b"):
                obstore.put(client, "a", b"")

    def test_a_dropped_answer_does_not_claim_to_be_unsent(self, s3: S3Server) -> None:
        s3.create_bucket("guards")
        s3.inject(S3Fault("PUT", action="drop", when="after"))
        with pytest.raises(GenericError) as caught:
            obstore.put(s3_client(s3), "a", b"")
        assert "kind: Connect" not in str(caught.value)

    def test_attributes_come_back_with_the_object(self, s3: S3Server) -> None:
        s3.create_bucket("guards")
        client = s3_client(s3)
        obstore.put(client, "a", b"", attributes={"omnigraph-claim": "x"}, use_multipart=False)
        assert obstore.get(client, "a").attributes["omnigraph-claim"] == "x"
