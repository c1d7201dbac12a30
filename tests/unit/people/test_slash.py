"""Slash commands: parsing, arguments and completion."""

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
    breaker,
    event,
    new_session,
    person,
    posted,
    ready,
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
def test_a_line_is_parsed_as_its_command_or_refused_in_one_sentence(
    snapshot: SnapshotAssertion,
) -> None:
    meanings = {line: meaning(line) for line in LINES}
    assert meanings == snapshot
    assert not any("\n" in text for text in meanings.values() if text.startswith("✗"))


@given(st.sampled_from(all_commands()), st.text(max_size=40))
def test_any_text_after_a_command_is_parsed_or_refused(command: object, rest: str) -> None:
    with suppress(UserError):
        assert isinstance(slash.read(command, rest.strip()), dict)  # type: ignore[arg-type]


def test_every_command_has_a_help_text_and_a_unique_path() -> None:
    for where in ("shell", "chat"):
        paths = [c.path for c in all_commands() if c.where in ("both", where)]
        assert len(set(paths)) == len(paths)
    for command in all_commands():
        assert command.help.endswith("."), command.path
        assert not command.operation or command.operation in known_operations(), command.path
        assert {p.name for p in command.positional} <= {p.name for p in command.parameters}


@pytest.mark.behaviour("M-321")
def test_the_short_help_of_a_list_is_whole_clauses() -> None:
    short = {command.path: command.short for command in all_commands()}
    assert short["documents diff"] == "Show the changes between two versions."
    assert short["resume"] == "Resume a thread, an agent or all."
    assert not [path for path, text in short.items() if text.endswith(" Default.")]


def test_a_declared_operation_of_a_mod_becomes_a_command() -> None:
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
def test_a_command_without_its_operation_is_unavailable() -> None:
    for line, operation in (("react m1 x", "toggle_reaction"), ("documents", "list_documents")):
        reason = "is not available here: this network does not have the mod [a-z]+; add "
        with pytest.raises(UserError, match=reason):
            slash.find(line, OFFERS - {operation}, (), LOCAL)
    with pytest.raises(UserError, match="there is no command /histroy; did you mean /history"):
        slash.find("histroy m5", OFFERS, (), LOCAL)


def test_operation_names_in_messages_are_replaced_with_commands() -> None:
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
    """Ann's session in a network with people and channels."""
    session = ChatSession("ann")
    people = (
        person("ann", "human"),
        person("calculator", about="adds numbers"),
        person("concierge"),
        person("amy", "human", present=False),
    )
    channels = (Channel(name="general", joined=True), Channel(name="desk", description="work"))
    general = thread(posted(1, "first"), posted(2, "second"))
    session.begin(ready(general, people=people, channels=channels))
    session.open("channel.general")
    return session


def with_all_operations(session: ChatSession) -> ChatSession:
    """The session, with every operation available."""
    session.offers = OFFERS
    return session


def in_charge() -> ChatSession:
    """Ann's session with an approval, a stop, a breaker, takeovers and an activity."""
    answer = posted(2).model_copy(update={"interaction_id": "i1", "cause_id": "m1", "hop": 1})
    session = with_all_operations(new_session(thread(posted(1), answer)))
    session.oversight.note(approval())
    session.oversight.stops = (stopped("agent", "bob"),)
    session.oversight.breakers = (breaker("channel.desk"),)
    session.oversight.takeovers = (takeover("bob", "ann"), takeover("concierge", "eve"))
    doing = {"state": "thinking", "turn": "bob-m4", "step": 1}
    session.hear(signal("activity", doing, sender="bob", thread="channel.general"), 0)
    return session


def with_mods() -> ChatSession:
    """Ann's session with known ids of mods."""
    file = Attachment(name="plan.pdf", uri="file:f3")
    messages = (
        posted(1, "mine", sender="ann"),
        posted(2).model_copy(update={"attachments": (file,)}),
    )
    session = ChatSession("ann")
    session.begin(ready(thread(*messages)))
    with_all_operations(session).open("channel.general")
    session.known_ids.note([("t1", "Write"), ("t12", "Print"), ("p1", "Lunch?"), ("b1", "")])
    session.known_ids.offer("p1", ("soup", "rice"))
    return session


@pytest.mark.behaviour("M-322")
def test_completions_are_offered_best_first(snapshot: SnapshotAssertion) -> None:
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


def test_a_candidate_has_a_harmless_description() -> None:
    session = in_a_network()
    about = {candidate.text: candidate.about for candidate in candidates("@", session)}
    assert about == {"calculator": "adds numbers", "concierge": "agent", "amy": "(away) human"}
    session.take(event(posted(3, "psst", thread="dm.amy.ann", tseq=1)))
    (amy,) = [each for each in candidates("/open ", session) if each.text == "@amy"]
    assert amy.about == "1 new psst"
    evil = new_session(thread(posted(1, "\x1b]0;title\x07")))
    assert candidates("/reply ", evil)[0].about == "bob: <U+001B>]0;title<U+0007>"


@given(st.text(max_size=40))
def test_a_candidate_replaces_only_text_before_the_cursor(before: str) -> None:
    for candidate in candidates(before, with_all_operations(new_session(thread(posted(1))))):
        assert 0 <= candidate.replaces <= len(before)


@given(st.sampled_from(["/", "/open ", "/dm ", "/join ", "@", "x @", "/dm bob,"]), st.data())
def test_a_chosen_candidate_is_still_offered(start: str, data: st.DataObject) -> None:
    session = new_session(thread(posted(1)))
    chosen = data.draw(st.sampled_from(candidates(start, session)))
    line = start[: len(start) - chosen.replaces] + chosen.text
    assert chosen.text in [candidate.text for candidate in candidates(line, session)]


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
