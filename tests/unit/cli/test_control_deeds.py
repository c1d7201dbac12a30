"""What people in charge type in a chat, and what is completed for them."""

from __future__ import annotations

import pytest

from hubbub.cli.chat import commands as chat
from hubbub.cli.chat.commands import parse
from hubbub.cli.chat.completion import candidates
from hubbub.cli.control import deeds
from hubbub.cli.full.commands import parse as parse_full
from hubbub.errors import UserError
from tests.unit.cli.chatting import begun, said, thread
from tests.unit.cli.controlling import approval, latched, stopped, takeover
from tests.unit.cli.fullscreen import signal

LINES: list[tuple[str, chat.Command]] = [
    ("/stop", deeds.Stop()),
    ("/stop turn", deeds.Stop("turn")),
    ("/stop turn bob-m4 too slow", deeds.Stop("turn", "bob-m4", "too slow")),
    ("/stop turn too slow", deeds.Stop("turn", None, "too slow")),
    ("/stop thread", deeds.Stop("thread")),
    ("/stop thread too loud", deeds.Stop("thread", None, "too loud")),
    ("/stop thread #desk too loud", deeds.Stop("thread", "#desk", "too loud")),
    ("/stop thread dm.ann.bob", deeds.Stop("thread", "dm.ann.bob")),
    ("/stop agent bob he is tired", deeds.Stop("agent", "bob", "he is tired")),
    ("/stop ALL fire", deeds.Stop("all", None, "fire")),
    ("/resume", deeds.Resume()),
    ("/resume all", deeds.Resume("all")),
    ("/resume thread", deeds.Resume("thread")),
    ("/resume agent bob", deeds.Resume("agent", "bob")),
    ("/stops", deeds.Stops()),
    ("/breaker", deeds.Breakers()),
    ("/breaker list", deeds.Breakers()),
    ("/breaker release #desk", deeds.Release("#desk")),
    ("/breaker release", deeds.Release()),
    ("/approvals", deeds.Approvals()),
    ("/approvals all", deeds.Approvals(everything=True)),
    ("/approve a1", deeds.Approve("a1")),
    ('/approve a1 {"path": "b c"}', deeds.Approve("a1", {"path": "b c"})),
    ("/deny a1 not that one", deeds.Deny("a1", "not that one")),
    ("/takeover bob", deeds.TakeOver("bob")),
    ("/takeover bob 1h", deeds.TakeOver("bob", 60)),
    ("/handback", deeds.HandBack()),
    ("/handback bob", deeds.HandBack("bob")),
    ("/as bob hello there", deeds.SpeakAs("bob", "hello there")),
    ("/spending", deeds.Spending()),
    ("/spending bob #desk 7", deeds.Spending("bob", "#desk", 7)),
    ("/spending 7 @bob", deeds.Spending("@bob", None, 7)),
    ("/requests all", deeds.Requests(everything=True)),
    ("/why m4", deeds.Why("m4")),
    ("/why bob m4", deeds.Why("m4", "bob")),
    ("/why m4 bob", deeds.Why("m4", "bob")),
    ("/interaction", deeds.Interaction()),
    ("/interaction i4", deeds.Interaction("i4")),
    ("/queue later then", chat.Say("later then", "queue")),
    ("/steer not so", chat.Say("not so", "steer")),
    ("/interrupt stop that", chat.Say("stop that", "interrupt")),
]


@pytest.mark.parametrize(("line", "command"), LINES)
def test_a_line_means_the_same_in_both_chats(line: str, command: chat.Command) -> None:
    assert parse(line) == command
    assert parse_full(line) == command


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("/stop everything", "'everything'"),
        ("/stop agnt bob", "did you mean 'agent'?"),
        ("/stop agent", "takes the agent's name"),
        ("/resume turn bob-m4", "a turn that was stopped is over"),
        ("/resume agent", "takes the agent's name"),
        ("/breaker open", "takes list or release"),
        ("/approvals some", "takes nothing, or all"),
        ("/approve", "takes an approval's id"),
        ("/approve a1 [1]", "a JSON object"),
        ("/approve a1 {x", "the arguments are no JSON"),
        ("/deny", "takes an approval's id"),
        ("/takeover", "takes an agent and perhaps a time"),
        ("/takeover bob 3 days", "takes an agent and perhaps a time"),
        ("/takeover bob 2d", "no time up to a day"),
        ("/takeover bob soon", "no time up to a day"),
        ("/as bob", "takes an agent and a text"),
        ("/spending 400", "1 to 366 days"),
        ("/why bob", "takes a message's id"),
        ("/why m1 bob eve", "takes a message's id"),
        ("/interaction bob", "takes the id of an interaction or of a message"),
        ("/queue", "takes a text"),
    ],
)
def test_what_cannot_be_meant_is_one_sentence_with_the_way_it_is_written(
    line: str, says: str
) -> None:
    with pytest.raises(UserError) as caught:
        parse(line)
    assert says in str(caught.value)
    assert f": {chat.COMMANDS[line[1:].split()[0]].usage}" in str(caught.value)


@pytest.mark.parametrize(
    ("before", "texts"),
    [
        ("/stop ", ["turn", "thread", "agent", "all"]),
        ("/stop a", ["agent", "all", "thread"]),
        ("/stop agent ", ["bob", "concierge"]),
        ("/stop turn ", ["bob-m4"]),
        ("/stop thread #g", ["#general"]),
        ("/resume ", ["thread", "agent", "all"]),
        ("/resume agent ", ["bob"]),
        ("/breaker ", ["list", "release"]),
        ("/breaker release ", ["#desk"]),
        ("/approve ", ["a1"]),
        ("/deny a", ["a1"]),
        ("/approvals ", ["all"]),
        ("/takeover c", ["concierge"]),
        ("/handback ", ["bob"]),
        ("/as ", ["bob"]),
        ("/as bob hello @con", ["concierge"]),
        ("/why ", ["m2", "m1"]),
        ("/why m2 ", ["bob", "concierge"]),
        ("/interaction ", ["i1"]),
        ("/deny a1 because @bo", ["bob"]),
    ],
)
def test_names_are_completed(before: str, texts: list[str]) -> None:
    answer = said(2).model_copy(update={"interaction_id": "i1", "cause_id": "m1", "hop": 1})
    session = begun(thread(said(1), answer))
    session.charge.note(approval())
    session.charge.stops = (stopped("agent", "bob"),)
    session.charge.latched = (latched("channel.desk"),)
    session.charge.takeovers = (takeover("bob", "ann"), takeover("concierge", "eve"))
    doing = {"state": "thinking", "turn": "bob-m4", "step": 1}
    session.hear(signal("activity", doing, sender="bob", thread="channel.general"), 0)
    assert [found.text for found in candidates(before, session)] == texts
