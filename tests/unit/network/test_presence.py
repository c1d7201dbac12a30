from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.network.state import Presence

pytestmark = pytest.mark.behaviour("P-25")


STEPS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["join", "leave", "tell"])))


@given(STEPS)
def test_a_listener_who_applies_every_change_knows_exactly_who_is_there(
    steps: list[tuple[str, str]],
) -> None:
    presence, sockets, told = Presence(), list[str](), set[str]()
    for who, step in [*steps, ("a", "tell")]:
        if step == "join":
            presence.join(who)
            sockets.append(who)
        elif step == "leave" and who in sockets:
            sockets.remove(who)
            presence.leave(who)
        elif step == "tell":
            came, went = presence.changes()
            assert (came, went) == (sorted(set(sockets) - told), sorted(told - set(sockets)))
            told = set(sockets)
            assert presence.changes() == ([], []), "told once"
        assert len(presence) == len(set(sockets))
        assert all((name in presence) is (name in sockets) for name in "abc")
