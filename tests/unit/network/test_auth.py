from __future__ import annotations

import hashlib
import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.network import auth
from hubbub.network.auth import is_loopback, new_token, proves, token_hash

pytestmark = pytest.mark.behaviour("D-1")


def test_a_token_is_stored_as_its_sha256_only() -> None:
    token = new_token()
    assert token_hash(token) == hashlib.sha256(token.encode()).hexdigest()


def test_fresh_tokens_differ_and_are_recognisable() -> None:
    made = {new_token() for _ in range(50)}
    assert len(made) == 50
    assert all(token.startswith("hub_") and len(token) > 40 for token in made)


def test_a_token_proves_whom_it_was_made_for_and_nobody_else() -> None:
    mine, other = new_token(), new_token()
    hashes = [token_hash(other), token_hash(mine)]
    assert proves(mine, hashes)
    assert not proves(mine, [token_hash(other)])
    assert not proves(mine + "x", hashes)


@pytest.mark.parametrize("token", [None, "", "hub_"])
def test_no_token_proves_nothing_even_against_the_hash_of_nothing(token: str | None) -> None:
    assert not proves(token, [token_hash(new_token())])
    assert not proves(token, [])
    assert not proves(None, [token_hash("")])


@given(st.text(max_size=100))
def test_no_text_breaks_the_comparison(token: str) -> None:
    assert proves(token, [token_hash(token)])
    assert not proves(token, [token_hash("hub_secret")])


def test_hashes_are_compared_in_constant_time() -> None:
    assert "compare_digest" in inspect.getsource(auth.proves)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "localhost", "::1", "[::1]"])
def test_addresses_of_this_machine_are_loopback(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "10.0.0.1", "example.org", "127.example.org", "127.0.0.1.example.org"]
)
def test_everything_else_can_be_reached_from_outside(host: str) -> None:
    assert not is_loopback(host)
