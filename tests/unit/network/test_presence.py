from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from hubbub.network.presence import Presence
from tests.examples import examples

pytestmark = pytest.mark.behaviour("P-25")


def test_who_opens_a_second_tab_does_not_come_twice() -> None:
    presence = Presence()
    presence.join("ann")
    assert presence.changes() == (["ann"], [])
    presence.join("ann")
    assert presence.changes() == ([], [])
    presence.leave("ann")
    assert presence.changes() == ([], [])
    assert "ann" in presence
    presence.leave("ann")
    assert presence.changes() == ([], ["ann"])
    assert "ann" not in presence


def test_who_goes_and_comes_back_before_anybody_asks_did_neither() -> None:
    presence = Presence()
    presence.join("ann")
    presence.changes()
    presence.leave("ann")
    presence.join("ann")
    assert presence.changes() == ([], [])


def test_who_comes_and_goes_before_anybody_asks_was_never_there() -> None:
    presence = Presence()
    presence.join("ann")
    presence.leave("ann")
    assert presence.changes() == ([], [])
    assert len(presence) == 0


def test_changes_come_sorted_and_once() -> None:
    presence = Presence()
    for name in ("carol", "ann", "bob"):
        presence.join(name)
    assert presence.changes() == (["ann", "bob", "carol"], [])
    assert presence.changes() == ([], [])


PEOPLE = st.sampled_from(["ann", "bob", "carol"])


class PresenceMachine(RuleBasedStateMachine):
    """A listener who applies every change knows exactly who is there."""

    def __init__(self) -> None:
        super().__init__()
        self.presence = Presence()
        self.sockets: list[str] = []
        self.told: set[str] = set()

    @rule(who=PEOPLE)
    def join(self, who: str) -> None:
        self.presence.join(who)
        self.sockets.append(who)

    @precondition(lambda self: bool(self.sockets))
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        who = data.draw(st.sampled_from(sorted(self.sockets)))
        self.sockets.remove(who)
        self.presence.leave(who)

    @rule()
    def tell(self) -> None:
        came, went = self.presence.changes()
        assert not self.told & set(came)
        assert set(went) <= self.told
        self.told = (self.told | set(came)) - set(went)
        assert self.told == set(self.sockets)

    @invariant()
    def who_is_there_is_who_has_a_socket(self) -> None:
        assert len(self.presence) == len(set(self.sockets))
        assert all(who in self.presence for who in self.sockets)


TestPresenceMachine = PresenceMachine.TestCase
TestPresenceMachine.settings = settings(
    max_examples=examples(30), stateful_step_count=30, deadline=None
)
