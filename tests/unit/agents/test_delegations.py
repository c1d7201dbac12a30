"""The end of a request that a handler waits for."""

from __future__ import annotations

import pytest

from hubbub.agents.python.link import Delegations, ends_request
from hubbub.protocol.messages import Message, RequestMark
from tests.unit.agents.builders import message

pytestmark = pytest.mark.behaviour("H-91")


def end(seq: int, request: str) -> Message:
    mark = RequestMark(id=request, kind="result")
    return message(seq, "worker", kind="agent").model_copy(update={"request": mark})


def test_only_a_result_with_its_id_ends_a_request() -> None:
    task = message(1).model_copy(update={"request": RequestMark(id="", kind="task")})
    assert ends_request(end(5, "m2"), "m2")
    assert not any(ends_request(other, "m2") for other in (end(5, "m3"), task, message(4)))


async def test_the_end_of_a_request_is_handed_over_once() -> None:
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


async def test_an_end_that_arrives_before_the_request_id_waits_for_it() -> None:
    delegations = Delegations()
    with delegations.begin() as first, delegations.begin() as second:
        verdicts = [v for n in (5, 6, 7) if (v := delegations.claim(end(n, f"m{n}"))) is not None]
        assert len(verdicts) == 3
        delegations.set_id(first, "m5")
        assert [v.done() for v in verdicts] == [True, False, False]
        delegations.set_id(second, "m6")
        assert [v.result() for v in verdicts] == [True, True, False]
        assert [(await w.end).seq for w in (first, second)] == [5, 6]


async def test_an_early_end_is_released_when_the_handler_gives_up() -> None:
    delegations = Delegations()
    with delegations.begin():
        verdict = delegations.claim(end(5, "m5"))
        assert verdict is not None
    assert verdict.result() is False
