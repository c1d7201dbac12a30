from __future__ import annotations

import pytest

from hubbub.errors import UserError
from hubbub.network.server import Listening, parse_listen


def test_a_listen_line_is_a_host_and_a_port() -> None:
    cases: list[tuple[str, str, int]] = [
        ("127.0.0.1:4820", "127.0.0.1", 4820),
        ("localhost:0", "localhost", 0),
        ("[::1]:4820", "::1", 4820),
        ("::1:4820", "::1", 4820),
        ("0.0.0.0:65535", "0.0.0.0", 65535),
    ]
    for listen, host, port in cases:
        assert parse_listen(listen) == (host, port)


def test_any_other_line_is_told_what_one_looks_like() -> None:
    cases: list[str] = [
        "",
        ":",
        "4820",
        ":4820",
        "127.0.0.1",
        "127.0.0.1:",
        "host:port",
        "h:65536",
        "h:-1",
        "h:²",
        "h:" + "9" * 5000,
    ]
    for listen in cases:
        with pytest.raises(UserError, match=r"127\.0\.0\.1:4820"):
            parse_listen(listen)


def test_an_address_of_version_6_is_written_in_brackets() -> None:
    assert Listening("::1", 4820).url == "ws://[::1]:4820"
    assert Listening("127.0.0.1", 4820).url == "ws://127.0.0.1:4820"
