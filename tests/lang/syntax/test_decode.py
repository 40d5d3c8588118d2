"""Bytes to text."""

from __future__ import annotations

import pytest

from omnigraph.lang.syntax import SourceError, decode_source


def test_utf8_is_read_and_a_byte_order_mark_is_dropped() -> None:
    assert decode_source("a.pg", "node Ü".encode()).text == "node Ü"
    assert decode_source("a.pg", "node Ü".encode("utf-8-sig")).text == "node Ü"


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_other_bytes_are_refused_with_their_place(mark: bytes) -> None:
    with pytest.raises(SourceError) as caught:
        decode_source("a.pg", mark + "// ü\nnode \xff {}".encode("latin-1").replace(b"\xfc", b"u"))
    finding = caught.value.details["diagnostics"][0]
    assert (finding["code"], finding["line"], finding["column"]) == ("P008", 2, 6)
    assert "0xff" in finding["message"]
