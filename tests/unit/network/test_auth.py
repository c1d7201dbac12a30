from __future__ import annotations

import hashlib
import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.network import auth
from hubbub.network.auth import LONGEST_S, WrongTokens, new_token, proves, token_hash

pytestmark = pytest.mark.behaviour("D-1")


def test_a_token_matches_only_its_own_hash() -> None:
    tokens = {new_token() for _ in range(50)}
    assert len(tokens) == 50
    assert all(token.startswith("hub_") and len(token) > 40 for token in tokens)
    mine, other = new_token(), new_token()
    assert token_hash(mine) == hashlib.sha256(mine.encode()).hexdigest()
    hashes = [token_hash(other), token_hash(mine)]
    assert proves(mine, hashes)
    assert not proves(mine, [token_hash(other)])
    for wrong in (None, "", "hub_", mine + "x"):
        assert not proves(wrong, hashes)
        assert not proves(wrong, [])
    assert not proves(None, [token_hash("")])
    assert "compare_digest" in inspect.getsource(auth.proves), "in constant time"


@given(st.text(max_size=100))
def test_comparing_any_text_never_fails(token: str) -> None:
    assert proves(token, [token_hash(token)])
    assert not proves(token, [token_hash("hub_secret")])


@pytest.mark.behaviour("D-9")
def test_wrong_tokens_from_an_address_delay_its_answers_up_to_a_limit() -> None:
    wrong = WrongTokens()
    waits = [wrong.wait("192.0.2.1", 100.0) for _ in range(20)]
    assert waits[:8] == [0, 0, 0, 0, 0, 1, 2, 3]
    assert max(waits) == LONGEST_S + 1
    assert wrong.wait("192.0.2.2", 100.0) == 0, "addresses are counted separately"
    assert wrong.wait("192.0.2.1", 103.0) == 3
    assert wrong.wait("192.0.2.1", 1000.0) == 0, "the delay expires"
    for host in range(5):  # an IPv6 network counts as one address
        assert wrong.wait(f"2001:db8::{host:x}", 0.0) == 0
    assert wrong.wait("2001:db8::ffff%eth0", 0.0) == 1
    assert wrong.wait("2001:db8:0:1::1", 0.0) == 0
    for second in range(1000):
        wrong.wait(f"192.0.2.{second % 250}", 2000 + second * 10.0)
    assert len(vars(wrong)["_paid_off"]) <= 2, "expired addresses are removed"
