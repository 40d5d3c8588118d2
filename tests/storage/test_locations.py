"""Parsing of graph URIs: accepted forms, and refusals with their remedies."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnigraph
from omnigraph.errors import UnsupportedLocation
from omnigraph.settings import Settings, StorageSettings
from omnigraph.storage.locations import parse_location

SEGMENTS = st.text(
    st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="/"), min_size=1, max_size=20
).filter(lambda text: text not in (".", ".."))


class TestLocalPaths:
    @pytest.mark.parametrize(
        ("spelling", "absolute"),
        [
            ("graph", "/work dir/graph"),
            ("./graph", "/work dir/graph"),
            ("../graph/", "/graph"),
            ("a/./b/../c", "/work dir/a/c"),
            (".", "/work dir"),
            ("/abs/olute", "/abs/olute"),
            ("/a//b///c/", "/a/b/c"),
            ("~/graph", "/work dir/~/graph"),
            ("with space", "/work dir/with space"),
            (" leading", "/work dir/ leading"),
            ("100%", "/work dir/100%"),
            ("a%20b", "/work dir/a%20b"),
            ("what?#", "/work dir/what?#"),
            ("name:with:colons", "/work dir/name:with:colons"),
            ("grüße/日本", "/work dir/grüße/日本"),
        ],
    )
    def test_a_path_is_made_absolute_and_nothing_else(
        self, monkeypatch: pytest.MonkeyPatch, spelling: str, absolute: str
    ) -> None:
        monkeypatch.setattr(os, "getcwd", lambda: "/work dir")
        location = parse_location(spelling)
        assert location.uri == absolute
        assert location.scheme == "file"
        assert location.is_local

    def test_a_path_object_is_a_path(self, tmp_path: Path) -> None:
        assert parse_location(tmp_path / "a b").uri == str(tmp_path / "a b")

    def test_parsing_touches_nothing(self, tmp_path: Path) -> None:
        parse_location(tmp_path / "graph")
        assert os.listdir(tmp_path) == []

    def test_a_deleted_working_directory_is_explained(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        gone = tmp_path / "gone"
        gone.mkdir()
        monkeypatch.chdir(gone)
        gone.rmdir()
        with pytest.raises(UnsupportedLocation, match="working directory was deleted"):
            parse_location("graph")

    @given(st.lists(SEGMENTS, min_size=1, max_size=4))
    def test_a_file_uri_and_the_path_it_encodes_are_the_same_place(
        self, segments: list[str]
    ) -> None:
        path = "/" + "/".join(segments)
        assert parse_location(f"file://{quote(path)}") == parse_location(path)


class TestFileUris:
    @pytest.mark.parametrize(
        ("uri", "path"),
        [
            ("file:///a/b", "/a/b"),
            ("file:///a%20b/%C3%BC", "/a b/ü"),
            ("file:///a b", "/a b"),
            ("file://localhost/a", "/a"),
            ("FILE:///a/../b", "/b"),
            ("file:///100%25", "/100%"),
            ("file:///q%3F%23", "/q?#"),
        ],
    )
    def test_a_file_uri_is_decoded(self, uri: str, path: str) -> None:
        location = parse_location(uri)
        assert location.uri == path
        assert location.is_local


class TestObjectStores:
    @pytest.mark.parametrize(
        ("uri", "bucket", "path"),
        [
            ("s3://bucket", "bucket", ""),
            ("s3://bucket/", "bucket", ""),
            ("s3://bucket/a/b/", "bucket", "a/b"),
            ("S3://my.bucket-1/with space/ü", "my.bucket-1", "with space/ü"),
        ],
    )
    def test_a_bucket_and_a_prefix(self, uri: str, bucket: str, path: str) -> None:
        location = parse_location(uri)
        assert (location.scheme, location.container, location.path) == ("s3", bucket, path)
        assert not location.is_local
        assert parse_location(location.uri) == location

    def test_a_memory_store_has_a_name(self) -> None:
        location = parse_location("memory://scratch/a/b/")
        assert (location.scheme, location.container, location.path) == ("memory", "scratch", "a/b")
        assert location.uri == "memory://scratch/a/b"
        assert not location.is_local


class TestRefusals:
    @pytest.mark.parametrize(
        ("uri", "says", "remedy"),
        [
            ("", "no location", "local path"),
            ("   ", "no location", "local path"),
            ("http://host/graph", "http://", "--server"),
            ("https://host/graph", "https://", "--server"),
            ("gs://bucket/graph", "gs://", "s3://"),
            ("s3a://bucket/graph", "s3a://", "s3://BUCKET"),
            ("file://host/graph", "host", "three slashes"),
            ("file:graph", "not a file URI", "file:///"),
            ("file:/graph", "not a file URI", "file:///"),
            ("file://", "no path", "file:///"),
            ("file:///a?b", "query", "%3F"),
            ("file:///a#b", "fragment", "%23"),
            ("file:///%ff", "UTF-8", "Percent-encode"),
            ("file:///a%00b", "control", "Remove"),
            ("a\0b", "control", "Remove"),
            ("a\nb", "control", "Remove"),
            ("\udcff", "UTF-8", "Rename"),
            ("s3://", "bucket", "s3://BUCKET"),
            ("s3:///graph", "bucket", "s3://BUCKET"),
            ("s3://Bucket/graph", "bucket", "lower-case"),
            ("s3://ab/graph", "bucket", "3 to 63"),
            ("s3://bucket//graph", "segment", "without"),
            ("s3://bucket/a/../b", "segment", "without"),
            ("s3://bucket/a%20b", "%", "without these"),
            ("s3://bucket/a?b", "?", "without these"),
            ("memory://", "memory store", "memory://NAME"),
            ("memory://a b", "memory store", "memory://NAME"),
            ("memory://a/../b", "segment", "without"),
        ],
    )
    def test_it_names_the_problem_and_what_to_do(self, uri: str, says: str, remedy: str) -> None:
        with pytest.raises(UnsupportedLocation) as caught:
            parse_location(uri)
        assert says in caught.value.message
        assert remedy in caught.value.remedy


class TestChildren:
    @pytest.mark.parametrize(
        "uri", ["/graph", "/", "s3://bucket/graph", "s3://bucket", "memory://m"]
    )
    def test_a_child_is_inside(self, uri: str) -> None:
        location = parse_location(uri)
        child = location.child("nodes", "a b")
        assert child.uri == location.uri.rstrip("/") + "/nodes/a b"
        assert child == location.child("nodes").child("a b") == location.child("nodes/a b")
        assert (child.scheme, child.container) == (location.scheme, location.container)

    @pytest.mark.parametrize("part", ["", "/abs", "..", "a/../b"])
    def test_a_name_that_leaves_the_place_is_refused(self, part: str) -> None:
        with pytest.raises(UnsupportedLocation):
            parse_location("/graph").child(part)

    def test_a_location_is_a_value(self) -> None:
        location = parse_location("s3://bucket/graph")
        assert pickle.loads(pickle.dumps(location)) == location
        assert len({location, parse_location("s3://bucket/graph/")}) == 1


def storage(environment: dict[str, str]) -> StorageSettings:
    return Settings.from_environment(environment).storage


class TestStorageOptions:
    S3 = parse_location("s3://bucket/graph")

    def test_local_and_memory_need_none(self) -> None:
        env = {"AWS_ACCESS_KEY_ID": "id"}
        assert parse_location("/graph").storage_options(storage(env)) == {}
        assert parse_location("memory://m").storage_options(storage(env)) == {}

    def test_the_aws_variables_are_honoured(self) -> None:
        env = {
            "AWS_ACCESS_KEY_ID": "id",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_SESSION_TOKEN": "token",
            "AWS_REGION": "eu-central-1",
            "AWS_DEFAULT_REGION": "us-west-2",
            "AWS_ENDPOINT_URL": "https://general",
            "AWS_ENDPOINT_URL_S3": "https://special",
            "AWS_S3_FORCE_PATH_STYLE": "true",
        }
        assert self.S3.storage_options(storage(env)) == {
            "aws_access_key_id": "id",
            "aws_secret_access_key": "secret",
            "aws_session_token": "token",
            "aws_region": "eu-central-1",
            "aws_endpoint": "https://special",
            "aws_virtual_hosted_style_request": "false",
        }

    def test_the_general_variables_are_the_fallback(self) -> None:
        env = {"AWS_DEFAULT_REGION": "us-west-2", "AWS_ENDPOINT_URL": "https://general"}
        options = self.S3.storage_options(storage(env))
        assert options == {"aws_region": "us-west-2", "aws_endpoint": "https://general"}

    def test_the_region_has_a_default(self) -> None:
        assert self.S3.storage_options(storage({})) == {"aws_region": "us-east-1"}

    def test_an_unencrypted_endpoint_must_be_allowed(self) -> None:
        env = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9000"}
        with pytest.raises(UnsupportedLocation) as caught:
            self.S3.storage_options(storage(env))
        assert "AWS_ALLOW_HTTP=true" in caught.value.remedy
        assert (
            self.S3.storage_options(storage({**env, "AWS_ALLOW_HTTP": "1"}))["allow_http"] == "true"
        )

    def test_virtual_hosted_style_can_be_asked_for(self) -> None:
        options = self.S3.storage_options(storage({"AWS_S3_FORCE_PATH_STYLE": "false"}))
        assert options["aws_virtual_hosted_style_request"] == "true"


AWKWARD_DIRECTORIES = (
    "a b", " a", "a#b", "a%b", "a%20b", "%zz", "grüße", "日本", "😀", "a'b", 'a"b', "a\\b", "a&b=c",
    "a;b", "[a]", "a*b", "{a}", "a:b", "~a", "-a", "a^b|c", "<a>", "`a", "$a", "a@b",
)  # fmt: skip


class TestAwkwardDirectories:
    @pytest.mark.parametrize("name", AWKWARD_DIRECTORIES)
    def test_a_graph_with_branches_lives_in_it_alone(self, name: str, tmp_path: Path) -> None:
        place = tmp_path / name / "graph"
        place.parent.mkdir()
        graph = omnigraph.init(place, "node N { k: String @key }\nedge E: N -> N")
        with graph.write() as w:
            w.insert("N", {"k": "x"})
        graph.branches.create("dev")
        with graph.write("dev") as w:
            w.insert("N", {"k": "y"})
            w.insert_edge("E", "x", "y")
        again = omnigraph.open(place)
        assert again.merge("dev", delete_branch=True).commit is not None
        assert len(again.query("query q() { match { $n: N } return { $n.k } }")) == 2
        files = [file for file in tmp_path.rglob("*") if file.is_file()]
        assert all(file.is_relative_to(place) for file in files)

    @pytest.mark.parametrize("name", ["a?b", "?", "what?#"])
    def test_a_question_mark_is_refused_before_anything_is_written(
        self, name: str, tmp_path: Path
    ) -> None:
        with pytest.raises(UnsupportedLocation) as caught:
            omnigraph.init(tmp_path / name / "graph", "node N { k: String @key }")
        assert "question mark" in caught.value.message
        assert "without question marks" in caught.value.remedy
        assert os.listdir(tmp_path) == []
