"""What is typed to use what mods bring, and where it is there."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.cli.chat.commands import COMMANDS, parse
from hubbub.cli.full import commands as full
from hubbub.cli.missing import unknown_operation
from hubbub.cli.workplace import works as w
from hubbub.cli.workplace.reading import WORKS
from hubbub.errors import UserError

ALL = frozenset(spec.needs for spec in WORKS.values())


@pytest.mark.parametrize(
    ("line", "work"),
    [
        ("/react m5 👍", w.React("m5", "👍")),
        ("/edit m5 two\nlines", w.Edit("m5", "two\nlines")),
        ("/delete m5", w.Delete("m5")),
        ("/delete m5 yes", w.Delete("m5", sure=True)),
        ("/history m5", w.History("m5")),
        ('/search "hot rice" -soup', w.Search('"hot rice" -soup')),
        ("/search", w.Search("")),
        ("/digest", w.Digest()),
        ("/digest 2026-03-01", w.Digest("2026-03-01")),
        ("/digest mark", w.Digest(mark=True)),
        ("/find translate a contract", w.Find("translate a contract")),
        ("/tasks", w.Tasks()),
        ("/tasks mine", w.Tasks(mine=True)),
        ("/tasks ready", w.Tasks(ready=True)),
        ("/tasks board", w.Board()),
        ("/tasks b3", w.Board("b3")),
        ("/task T3", w.Task("t3")),
        ("/todo Write it down", w.CreateTask("Write it down")),
        ("/claim t3", w.Claim("t3")),
        ("/done t3", w.Finish("t3")),
        ("/done t3 it is in d1", w.Finish("t3", "it is in d1")),
        ('/poll "Is it?" a | b|c', w.CreatePoll("Is it?", ("a", "b", "c"))),
        ("/poll Is it? a | b", w.CreatePoll("Is it?", ("a", "b"))),
        ("/vote p1 2", w.Vote("p1", ("2",))),
        ("/vote p1 2, 3", w.Vote("p1", ("2", "3"))),
        ("/vote p1 hot rice | soup", w.Vote("p1", ("hot rice", "soup"))),
        ("/vote p1 none", w.Vote("p1", ())),
        ("/polls", w.Polls()),
        ("/polls p1", w.Poll("p1")),
        ("/closepoll p1", w.ClosePoll("p1")),
        ("/files", w.Files()),
        ("/attach a.png", w.Attach("a.png")),
        ("/attach ~/a.png look here", w.Attach("~/a.png", "look here")),
        ('/attach "my plan.pdf" the plan', w.Attach("my plan.pdf", "the plan")),
        ("/get f1", w.Get("f1")),
        ('/get f1 "my plan.pdf"', w.Get("f1", "my plan.pdf")),
        ("/get f1 out.csv", w.Get("f1", "out.csv")),
        ("/docs", w.Documents()),
        ("/doc d1", w.Document("d1")),
        ("/doc d1 v2 :40", w.Document("d1", 2, 40)),
        ("/diff d1", w.Diff("d1")),
        ("/diff d1 1..3", w.Diff("d1", 1, 3)),
        ("/diff d1 v1..v3", w.Diff("d1", 1, 3)),
        ("/diff d1 2", w.Diff("d1", 2)),
        ("/diff d1 ..3", w.Diff("d1", None, 3)),
        ("/title Lunch", w.Title("Lunch")),
        ("/title", w.Title("")),
        ("/resolve", w.Resolve()),
        ("/reopen", w.Resolve(False)),
        ("/mute", w.Mute()),
        ("/unmute", w.Mute(False)),
    ],
)
def test_a_line_means_its_work(line: str, work: w.Work) -> None:
    assert parse(line, ALL) == full.parse(line, ALL) == work


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("/react m5", "takes a message's id and one emoji: /react <m42> <emoji>"),
        ("/react five 👍", "takes a message's id: "),
        ("/edit m5", "what it says from now on"),
        ("/delete m5 no", "perhaps yes"),
        ("/digest yesterday", "a time such as"),
        ("/find", "what must be done"),
        ("/tasks all", "or a board's id such as b3"),
        ("/task 3", "takes a task's id such as t3: /task <t3>"),
        ("/todo", "what is to be done"),
        ("/done d1", "a task's id"),
        ("/poll Lunch soup | rice", "options with |"),
        ("/poll Lunch? soup", "options with |"),
        ("/vote p1", "what you vote for"),
        ("/vote 1 2", "a poll's id"),
        ("/attach", "a file of this machine"),
        ("/get a.png", "a file's id such as f3"),
        ("/doc d1 2", "a version (v2)"),
        ("/diff d1 x", "versions such as 1..2"),
        ("/files now", "takes nothing"),
        ("/reakt m5 👍", "did you mean /react?"),
    ],
)
def test_what_is_wrong_is_said_with_how_to_write_it(line: str, says: str) -> None:
    with pytest.raises(UserError) as caught:
        parse(line, ALL)
    assert says in str(caught.value)


@pytest.mark.behaviour("M-310")
def test_without_its_operation_a_command_is_not_there() -> None:
    for word, spec in WORKS.items():
        told = f"/{word} is not to be had here: this network does not have the mod [a-z]+; add "
        with pytest.raises(UserError, match=told):
            parse(f"/{word} x", ALL - {spec.needs})
    with pytest.raises(UserError, match="there is no command /histroy; /help lists them"):
        parse("/histroy m5")


def test_no_command_of_a_mod_hides_another_one() -> None:
    assert len(COMMANDS) == len([*COMMANDS.values()])
    assert not any(COMMANDS[word] is not spec for word, spec in WORKS.items())
    assert full.COMMANDS.keys() >= WORKS.keys()


@given(st.sampled_from(sorted(WORKS)), st.text(max_size=40))
def test_whatever_follows_a_command_is_a_work_or_a_sentence(word: str, rest: str) -> None:
    with suppress(UserError):
        found = parse(f"/{word} {rest}", ALL)
        assert isinstance(found, w.Work)


@pytest.mark.behaviour("M-380")
def test_an_operation_that_the_network_lacks_is_told_with_its_mod() -> None:
    told = unknown_operation("there is no operation 'list_polls'; did you mean list_models?")
    assert told is not None
    assert "does not have the mod polls; add `- polls`" in told
    assert unknown_operation("there is no operation 'lst_polls'; did you mean list_polls?") is None
