"""Listen addresses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.config.address import Address, parse_address


@pytest.mark.parametrize(
    ("text", "host", "port", "loopback"),
    [
        ("127.0.0.1:4820", "127.0.0.1", 4820, True),
        ("127.8.8.8:1", "127.8.8.8", 1, True),
        ("localhost:0", "localhost", 0, True),
        ("[::1]:4820", "::1", 4820, True),
        ("0.0.0.0:4820", "0.0.0.0", 4820, False),
        ("[::]:4820", "::", 4820, False),
        ("192.168.1.5:65535", "192.168.1.5", 65535, False),
        ("hub.example:80", "hub.example", 80, False),
        ("127.0.0.1.example:80", "127.0.0.1.example", 80, False),
    ],
)
def test_an_address_is_host_and_port_and_knows_who_can_reach_it(
    text: str, host: str, port: int, loopback: bool
) -> None:
    address = parse_address(text)
    assert address == Address(host, port)
    assert address.loopback is loopback
    assert str(address) == text


@pytest.mark.parametrize(
    "text",
    ["", ":", "4820", "127.0.0.1", ":4820", "127.0.0.1:", "h:65536", "h:-1", "h:x", "h:٣", "a b:1"],
)
def test_what_is_no_address_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected host:port, for example 127\.0\.0\.1:4820"):
        parse_address(text)


@pytest.mark.parametrize("text", ["ws://127.0.0.1:4820", "http://localhost:4820"])
def test_a_url_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match="is no address"):
        parse_address(text)


def test_an_ipv6_host_without_brackets_is_told_about_them() -> None:
    with pytest.raises(ValueError, match="write an IPv6 host in brackets"):
        parse_address("::1:4820")


@given(st.ip_addresses(), st.integers(0, 65535))
def test_every_ip_address_survives_the_way_to_text_and_back(host: object, port: int) -> None:
    address = Address(str(host), port)
    assert parse_address(str(address)) == address
