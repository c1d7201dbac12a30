"""Edited and deleted messages in an agent's inbox."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.agents.inbox import MAX_THREAD_MESSAGES, Inbox
from hubbub.agents.prompt.render import ConversationTemplate, select_history
from hubbub.config.models import HistoryConfig
from hubbub.protocol.messages import Amendment, Message
from tests.unit.agents.builders import ME, event, message, pending, plan, ready

THREAD = "dm.alice.bot"


def edit(seq: int, of: int, content: str = "edited", *, untrusted: bool = False) -> Message:
    amends = Amendment(message_id=f"m{of}", kind="edited")
    made = message(seq, content=content)
    return made.model_copy(update={"amends": amends, "untrusted": untrusted})


def deletion(seq: int, of: int) -> Message:
    amends = Amendment(message_id=f"m{of}", kind="deleted")
    return message(seq, content="").model_copy(update={"amends": amends})


def begun(*messages: Message) -> Inbox:
    inbox = Inbox(ME)
    inbox.begin(ready(max((m.seq for m in messages), default=0), *messages))
    return inbox


def shown(inbox: Inbox) -> list[tuple[object, str | None]]:
    thread = inbox.thread(THREAD)
    return [(m.content, m.amended) for m in thread.messages] if thread else []


def incoming(inbox: Inbox) -> list[str]:
    """The texts that the only next turn begins with."""
    [turn] = inbox.next_turns()
    return [m.text for m in turn.incoming]


@pytest.mark.behaviour("M-90")
def test_a_thread_has_the_latest_text_and_edits_take_no_place() -> None:
    inbox = begun(message(1, content="one"), message(2, content="two"))
    inbox.receive(event(edit(3, 1, "ONE"), wakes=False))
    inbox.receive(event(edit(4, 1, "One"), wakes=False))
    inbox.receive(event(deletion(5, 2), wakes=False))
    assert shown(inbox) == [("One", "edited"), ("", "deleted")]
    positions = range(1, MAX_THREAD_MESSAGES + 1)
    inbox = begun(*(message(n, content=str(n)) for n in positions))
    for n in positions:
        inbox.receive(event(edit(MAX_THREAD_MESSAGES + n, n, f"new {n}"), wakes=False))
    assert [text for text, _ in shown(inbox)] == [f"new {n}" for n in positions]
    inbox = begun(message(1, "alice"), message(2, "bob"))
    inbox.receive(event(edit(3, 1), wakes=False))
    assert [thread.id for thread in inbox.threads] == ["dm.bob.bot", THREAD]
    inbox = begun()
    inbox.receive(event(edit(3, 2, "better"), wakes=False))
    assert list(inbox.threads) == []
    inbox.note(message(2, ME, "mine", thread=THREAD, kind="agent"))
    assert shown(inbox) == [("better", "edited")]
    inbox = begun(message(1), edit(2, 1, "from a page", untrusted=True), edit(3, 1, "my own words"))
    thread = inbox.thread(THREAD)
    assert thread is not None
    assert thread.messages[0].untrusted


@pytest.mark.behaviour("M-91")
def test_a_message_edited_before_its_turn_begins_arrives_edited() -> None:
    inbox = begun()
    inbox.receive(event(message(1, content="what is 1 + 1?")))
    inbox.receive(event(edit(2, 1, "what is 2 + 2?"), wakes=False))
    assert incoming(inbox) == ["what is 2 + 2?"]
    inbox = begun()
    held = event(message(1, content="old"))
    inbox.receive(held, claimed=True)
    inbox.receive(event(edit(2, 1, "new"), wakes=False))
    assert held.wake is not None
    inbox.requeue(held.message, held.wake)
    assert incoming(inbox) == ["new"]
    inbox = Inbox(ME)
    waiting = message(1, content="old")
    inbox.begin(ready(2, waiting, edit(2, 1, "new"), pending=(pending(waiting),)))
    assert incoming(inbox) == ["new"]


@pytest.mark.behaviour("M-91")
def test_steering_that_is_edited_before_it_is_read_arrives_edited() -> None:
    inbox = begun()
    inbox.receive(event(message(1)))
    inbox.next_turns()
    inbox.receive(event(message(2, content="no, wait")))
    inbox.receive(event(edit(3, 2, "go on"), wakes=False))
    assert [w.message.text for w in inbox.steering(THREAD)] == ["go on"]


@pytest.mark.behaviour("M-92")
def test_a_prompt_marks_edited_and_deleted_messages() -> None:
    inbox = begun(
        message(1, content="one"),
        message(2, content="two"),
        edit(3, 1, "ONE"),
        deletion(4, 2),
        message(5, content="go"),
    )
    turn = plan(message(5, content="go"))
    views = select_history(inbox.threads, turn, ME, HistoryConfig())
    prompt = ConversationTemplate.shipped().render(views, "direct_alice", turn.shown)
    first, second = [line for line in prompt.splitlines() if "<message " in line]
    assert 'edited="true"' in first
    assert "<content>ONE</content>" in first
    assert 'deleted="true"' in second
    assert "<content></content>" in second


@given(st.data())
def test_messages_and_edits_can_arrive_in_any_order(data: st.DataObject) -> None:
    log = [message(1, content="1"), message(2, content="2")]
    for seq in range(3, data.draw(st.integers(3, 10))):
        of = data.draw(st.integers(1, 2))
        made = edit(seq, of, str(seq)) if data.draw(st.integers(0, 4)) else deletion(seq, of)
        log.append(made)
    in_order, shuffled = begun(*log), begun()
    for each in data.draw(st.permutations(log)):
        shuffled.note(each)
    assert shown(shuffled) == shown(in_order)
    for inbox in (in_order, shuffled):
        thread = inbox.thread(THREAD)
        assert thread is not None
        assert thread.is_complete(log[-1].tseq, 0)
