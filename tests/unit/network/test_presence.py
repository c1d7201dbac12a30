from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.network.state import Presence

pytestmark = pytest.mark.behaviour("P-25")


STEPS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["join", "leave", "tell"])))


@given(STEPS)
def test_applying_every_change_yields_the_participants_present(
    steps: list[tuple[str, str]],
) -> None:
    presence, sockets, notified = Presence(), list[str](), set[str]()
    for who, step in [*steps, ("a", "tell")]:
        if step == "join":
            presence.join(who)
            sockets.append(who)
        elif step == "leave" and who in sockets:
            sockets.remove(who)
            presence.leave(who)
        elif step == "tell":
            arrived, departed = presence.changes()
            assert (arrived, departed) == (
                sorted(set(sockets) - notified),
                sorted(notified - set(sockets)),
            )
            notified = set(sockets)
            assert presence.changes() == ([], []), "each change is reported once"
        assert len(presence) == len(set(sockets))
        assert all((name in presence) is (name in sockets) for name in "abc")
