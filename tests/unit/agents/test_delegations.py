"""Who gets the end of a request that a handler waits for."""

from __future__ import annotations

import pytest

from hubbub.agents.python.link import Delegations, ends_request
from hubbub.protocol.messages import Message, RequestMark
from tests.unit.agents.builders import message

pytestmark = pytest.mark.behaviour("H-91")


def end(seq: int, request: str) -> Message:
    mark = RequestMark(id=request, kind="result")
    return message(seq, "worker", kind="agent").model_copy(update={"request": mark})


def test_only_what_ends_a_request_is_its_end() -> None:
    task = message(1).model_copy(update={"request": RequestMark(id="", kind="task")})
    assert [ends_request(m, "m2") for m in (end(5, "m2"), end(5, "m3"), task, message(4))] == [
        True,
        False,
        False,
        False,
    ]


async def test_an_end_that_comes_is_handed_over_once() -> None:
    delegations = Delegations()
    with delegations.begin() as waiting:
        delegations.set_id(waiting, "m2")
        assert delegations.claim(message(4)) is None
        assert delegations.claim(end(5, "m3")) is None
        verdict = delegations.claim(end(6, "m2"))
        assert verdict is not None
        assert verdict.result() is True
        assert (await waiting.end).seq == 6
        assert delegations.claim(end(7, "m2")) is None
    assert delegations.claim(end(8, "m2")) is None


async def test_one_that_comes_before_its_name_waits_for_it() -> None:
    delegations = Delegations()
    with delegations.begin() as first, delegations.begin() as second:
        mine, theirs, nobodys = (delegations.claim(end(n, f"m{n}")) for n in (5, 6, 7))
        assert mine is not None
        assert theirs is not None
        assert nobodys is not None
        delegations.set_id(first, "m5")
        assert (mine.done(), theirs.done(), nobodys.done()) == (True, False, False)
        delegations.set_id(second, "m6")
        assert [v.result() for v in (mine, theirs, nobodys)] == [True, True, False]
        assert [(await w.end).seq for w in (first, second)] == [5, 6]


async def test_who_gives_up_before_there_is_a_name_leaves_it_to_others() -> None:
    delegations = Delegations()
    with delegations.begin():
        verdict = delegations.claim(end(5, "m5"))
        assert verdict is not None
    assert verdict.result() is False
