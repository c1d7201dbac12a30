from __future__ import annotations

import pytest

from hubbub.errors import UserError
from hubbub.network.server import Listening, parse_listen


def test_a_listen_address_is_a_host_and_a_port() -> None:
    for listen, host, port in (
        ("127.0.0.1:4820", "127.0.0.1", 4820),
        ("localhost:0", "localhost", 0),
        ("[::1]:4820", "::1", 4820),
        ("0.0.0.0:65535", "0.0.0.0", 65535),
    ):
        assert parse_listen(listen) == (host, port)
    wrong = ("", ":", "4820", ":4820", "127.0.0.1", "127.0.0.1:", "host:port", "h:65536", "h:-1")
    for listen in (*wrong, "h:²", "h:" + "9" * 5000):
        with pytest.raises(UserError, match=r"127\.0\.0\.1:4820") as caught:
            parse_listen(listen)
        assert "listen" not in str(caught.value)  # it can be that of another option
    assert Listening("::1", 4820).url == "ws://[::1]:4820"
    assert Listening("127.0.0.1", 4820).url == "ws://127.0.0.1:4820"
