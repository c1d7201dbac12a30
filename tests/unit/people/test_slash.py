"""What is typed after a slash: which command it is, what it is given, what could come next."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from hubbub.errors import UserError
from hubbub.people.chat import slash
from hubbub.people.chat.completion import Candidate
from hubbub.people.chat.console import Status
from hubbub.people.chat.session import ChatSession
from hubbub.people.chat.slash import LOCAL
from hubbub.people.commands import CHAT, all_commands, in_commands, mod_commands
from hubbub.people.figures import SHELL
from hubbub.people.parameters import described_operations, known_operations
from hubbub.protocol.messages import Attachment, Channel, OperationInfo
from tests.unit.people.chatting import (
    approval,
    begun,
    breaker,
    event,
    person,
    ready,
    said,
    signal,
    stopped,
    takeover,
    thread,
)

OFFERS = frozenset(known_operations())
LINES = (
    "tasks", "tasks list --ready", "tasks list --owner ann --state open", "/ready",
    "tasks add Write it down", "tasks add --priority high --due 2026-03-01 Write it", "tasks add",
    "claim t3", "tasks claim", "tasks claim t3 now", "finish t3 it is in d1", "board", "board b3",
    "tasks list --state nonsense", "tasks list --limit 0", "tasks list --limit many",
    "tasks list --frobnicate", "TASKS LIST", "add x", "list", "show t3", "tsks", "",
    'ask "Is it?" a | b|c', "ask Is it? a | b", "ask Lunch? soup", "ask Lunch? soup 'hot rice'",
    "vote p1 2", "vote p1 2, 3", "vote p1 hot rice | soup", "vote p1 none", "vote p1", "polls",
    "react m5 👍", "react m5", "edit m5 two\nlines", "edit m5", "edit\tm5\tnew text",
    "delete m5", "delete m5 yes",
    "history m5", 'search "hot rice" -soup', "search", "search --by bob rice", "digest",
    "digest mark", "find translate a contract", "find",
    "attach a.png", "attach ~/a.png look here", 'attach "my plan.pdf" the plan', "get f1",
    'get f1 "my plan.pdf"', "documents", "documents show --version 2 --first 40 d1",
    "diff d1", "diff d1 1 3", "title Lunch", 'title ""', "resolve", "threads reopen", "mute",
    "mute --thread #desk", "mute #desk",
    "stop", "stop turn bob-m4 too slow", "stop thread too loud", "stop agent bob he is tired",
    "resume", "resume agent bob", "resume all", "stops", "network status",
    "approvals", "approvals list --state all", "approve a1", 'approve a1 {"path": "b c"}',
    "approve a1 [1]", "approve a1 {x", "approve", "deny a1 not that one", "deny",
    "takeover bob", "takeover bob 1h", "agents release", "as bob hello there", "as bob",
    "spending --agent bob --thread #desk --days 7", "spending --days 367", "requests",
    "why m4", "why m4 bob", "interaction", "interaction i4", "turns show --full bob-m4",
)  # fmt: skip


def meaning(line: str) -> str:
    try:
        command, rest = slash.find(line, OFFERS, (), LOCAL)
        return f"{command.path} {slash.read(command, rest)}"
    except UserError as error:
        return f"✗ {error}"


@pytest.mark.behaviour("M-310")
def test_a_line_means_its_command_or_gets_one_sentence_with_how_to_write_it(
    snapshot: SnapshotAssertion,
) -> None:
    found = {line: meaning(line) for line in LINES}
    assert found == snapshot
    assert not any("\n" in told for told in found.values() if told.startswith("✗"))


@given(st.sampled_from(all_commands()), st.text(max_size=40))
def test_whatever_follows_a_command_is_read_or_is_a_sentence(command: object, rest: str) -> None:
    with suppress(UserError):
        assert isinstance(slash.read(command, rest.strip()), dict)  # type: ignore[arg-type]


def test_every_command_explains_itself_and_is_one_of_its_own() -> None:
    for where in ("shell", "chat"):
        paths = [c.path for c in all_commands() if c.where in ("both", where)]
        assert len(set(paths)) == len(paths)
    for command in all_commands():
        assert command.help.endswith("."), command.path
        assert not command.operation or command.operation in known_operations(), command.path
        assert {p.name for p in command.positional} <= {p.name for p in command.parameters}


@pytest.mark.behaviour("M-321")
def test_an_operation_of_a_mod_has_its_command_by_being_declared() -> None:
    schema = {
        "properties": {"who": {"type": "string", "description": "Who gets it."},
                       "count": {"type": "integer", "default": 1, "minimum": 1},
                       "shape": {"$ref": "#/$defs/Shape"}},
        "required": ["who"],
    }  # fmt: skip
    info = OperationInfo(
        name="give_kudos", description="Give kudos. Often.", permission="write", input_schema=schema
    )
    (command,) = mod_commands("kudos", described_operations([info], "kudos"))
    assert (command.path, command.help) == ("kudos give", "Give kudos.")
    assert slash.usage(command) == "/kudos give <who>"
    assert slash.read(command, "--count 3 ann") == {"count": 3, "who": "ann"}
    impossible = info.model_copy(update={"input_schema": {**schema, "required": ["shape"]}})
    assert mod_commands("kudos", described_operations([impossible], "kudos")) == ()


@pytest.mark.behaviour("M-310", "M-380")
def test_without_its_operation_a_command_is_not_there() -> None:
    for line, operation in (("react m1 x", "toggle_reaction"), ("documents", "list_documents")):
        told = "is not available here: this network does not have the mod [a-z]+; add "
        with pytest.raises(UserError, match=told):
            slash.find(line, OFFERS - {operation}, (), LOCAL)
    with pytest.raises(UserError, match="there is no command /histroy; did you mean /history"):
        slash.find("histroy m5", OFFERS, (), LOCAL)


def test_the_hubs_operations_are_told_as_commands() -> None:
    message = "there is no task t9 for you; see list_tasks, or say some_other_thing"
    assert in_commands(message, SHELL) == (
        "there is no task t9 for you; see `hubbub tasks list`, or say some_other_thing"
    )
    assert in_commands("see list_threads", CHAT, chat=True) == "see `/threads`"
    shown = {CHAT(path) for path in ("approvals approve a1", "tasks list", "files delete f1")}
    assert shown == {"/approve a1", "/tasks list", "/files delete f1"}


# Completion ---------------------------------------------------------------------------------------


def candidates(line: str, session: ChatSession) -> list[Candidate]:
    return Status(session).candidates(line)


def offered(session: ChatSession, *lines: str) -> dict[str, str]:
    return {line: " ".join(one.text for one in candidates(line, session)) for line in lines}


def in_a_network() -> ChatSession:
    """Ann's, in a network with some people and channels."""
    session = ChatSession("ann")
    people = (
        person("ann", "human"),
        person("calculator", about="adds numbers"),
        person("concierge"),
        person("amy", "human", present=False),
    )
    channels = (Channel(name="general", joined=True), Channel(name="desk", description="work"))
    spoken = thread(said(1, "first"), said(2, "second"))
    session.begin(ready(spoken, people=people, channels=channels))
    session.open("channel.general")
    return session


def offering(session: ChatSession) -> ChatSession:
    """The same, where the hub has everything."""
    session.offers = OFFERS
    return session


def in_charge() -> ChatSession:
    """Ann's, where something waits, is stopped, taken over and at work."""
    answer = said(2).model_copy(update={"interaction_id": "i1", "cause_id": "m1", "hop": 1})
    session = offering(begun(thread(said(1), answer)))
    session.oversight.note(approval())
    session.oversight.stops = (stopped("agent", "bob"),)
    session.oversight.breakers = (breaker("channel.desk"),)
    session.oversight.takeovers = (takeover("bob", "ann"), takeover("concierge", "eve"))
    doing = {"state": "thinking", "turn": "bob-m4", "step": 1}
    session.hear(signal("activity", doing, sender="bob", thread="channel.general"), 0)
    return session


def with_mods() -> ChatSession:
    """Ann's, where she has come across some things."""
    file = Attachment(name="plan.pdf", uri="file:f3")
    messages = (said(1, "mine", sender="ann"), said(2).model_copy(update={"attachments": (file,)}))
    session = ChatSession("ann")
    session.begin(ready(thread(*messages)))
    offering(session).open("channel.general")
    session.known_ids.note([("t1", "Write"), ("t12", "Print"), ("p1", "Lunch?"), ("b1", "")])
    session.known_ids.offer("p1", ("soup", "rice"))
    return session


@pytest.mark.behaviour("M-322")
def test_what_could_come_next_is_offered_best_first(snapshot: SnapshotAssertion) -> None:
    assert offered(
        in_a_network(),
        "/", "/q", "/jo", "/re", "@ca", "hello @con", "(@con", "@", "@ator", "mail@con", "@con ",
        "@@con", "plain text", "", "/dm c", "/dm @calc", "/dm calculator,c", "/dm calculator ,c",
        "/dm calculator hi @con", "/join ", "/join #de", "/leave g", "/reply ",
        "/reply m2 see @am", "/open ", "/open gen", "/nonsense x",
    ) == snapshot(name="people, threads and messages")  # fmt: skip
    assert offered(
        in_charge(),
        "/stop ", "/stop a", "/stop agent ", "/stop turn ", "/stop thread #g", "/resume ",
        "/resume agent ", "/resume thread ", "/approve ", "/deny a", "/approvals ",
        "/takeover c", "/agents release ", "/as ", "/as bob hello @con", "/why ", "/why m2 ",
        "/interaction ", "/deny a1 because @bo",
    ) == snapshot(name="control")  # fmt: skip
    assert offered(
        with_mods(),
        "/reac", "/tas", "/tasks ", "/react ", "/react m1 ", "/edit ", "/claim ", "/claim t12",
        "/vote ", "/vote p1 ", "/get ", "/tasks list --st", "/tasks list --state ", "/board ",
    ) == snapshot(name="mods")  # fmt: skip


def test_a_candidate_says_what_it_is_and_is_harmless() -> None:
    session = in_a_network()
    about = {found.text: found.about for found in candidates("@", session)}
    assert about == {"calculator": "adds numbers", "concierge": "agent", "amy": "(away) human"}
    session.take(event(said(3, "psst", thread="dm.amy.ann", tseq=1)))
    (found,) = [f for f in candidates("/open ", session) if f.text == "@amy"]
    assert found.about == "1 new psst"
    evil = begun(thread(said(1, "\x1b]0;title\x07")))
    assert candidates("/reply ", evil)[0].about == "bob: <U+001B>]0;title<U+0007>"


@given(st.text(max_size=40))
def test_a_candidate_replaces_only_what_stands_before_the_cursor(before: str) -> None:
    for found in candidates(before, offering(begun(thread(said(1))))):
        assert 0 <= found.replaces <= len(before)


@given(st.sampled_from(["/", "/open ", "/dm ", "/join ", "@", "x @", "/dm bob,"]), st.data())
def test_choosing_a_candidate_leaves_it_as_the_only_match_or_a_prefix(
    start: str, data: st.DataObject
) -> None:
    session = begun(thread(said(1)))
    found = data.draw(st.sampled_from(candidates(start, session)))
    line = start[: len(start) - found.replaces] + found.text
    assert found.text in [again.text for again in candidates(line, session)]


@pytest.mark.behaviour("M-322")
def test_paths_are_completed_folder_by_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    for name in ("docs/plan.pdf", "notes.md", ".hidden", "two words.md"):
        (tmp_path / name).write_text("x")
    session = with_mods()
    folder = Candidate("docs/", 0, "folder", last=False)
    assert candidates("/attach ", session) == [folder, Candidate("notes.md", 0)]
    assert offered(session, "/attach docs/p", "/attach .h", "/attach none/") == {
        "/attach docs/p": "docs/plan.pdf",
        "/attach .h": ".hidden",
        "/attach none/": "",
    }
