"""What is typed in the two chats: what it means, what is wrong with it, what could come next."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from hubbub.cli.chat import commands as chat
from hubbub.cli.chat.commands import parse
from hubbub.cli.chat.completion import Candidate, candidates
from hubbub.cli.chat.known import Known
from hubbub.cli.chat.session import Session
from hubbub.cli.control.reading import DEEDS
from hubbub.cli.missing import unknown_operation
from hubbub.cli.workplace.reading import WORKS
from hubbub.errors import UserError
from hubbub.protocol.messages import Attachment, Channel, OperationInfo
from tests.unit.cli.chatting import (
    approval,
    begun,
    event,
    latched,
    person,
    ready,
    said,
    signal,
    stopped,
    takeover,
    thread,
)

ALL = frozenset(spec.needs for spec in WORKS.values())
LINES = (
    "hello there", "  @bob  look  ", "//etc/hosts", "two\nlines", "", " \t\n",
    "/threads", "/THREADS", "/threads now", "/thread", "/frobnicate", "/",
    "/open 2", "/open direct_bob", "/open",
    "/dm bob", "/dm @bob,carol", "/dm bob,bob,", "/dm bob ,carol hi", "/dm bob how are  you?",
    "/dm", "/dm ,",
    "/channel general", "/channel #general", "/channel", "/join #desk", "/join a b",
    "/create desk", "/leave", "/leave #desk", "/leave a b", "/who",
    "/reply m42 fine by me", "/reply", "/reply m42", "/reply 42 yes",
    "/more", "/wait", "/wait 0.5", "/wait 3600", "/wait 3601", "/wait soon", "/wait -1",
    "/wait nan", "/help", "/quit", "/queue later then", "/steer not so", "/interrupt stop that",
    "/queue",
)  # fmt: skip
CONTROL_LINES = (
    "/stop", "/stop turn", "/stop turn bob-m4 too slow", "/stop turn too slow", "/stop thread",
    "/stop thread too loud", "/stop thread #desk too loud", "/stop thread dm.ann.bob",
    "/stop agent bob he is tired", "/stop ALL fire", "/stop everything", "/stop agnt bob",
    "/stop agent",
    "/resume", "/resume all", "/resume thread", "/resume agent bob", "/resume turn bob-m4",
    "/resume agent", "/stops",
    "/breaker", "/breaker list", "/breaker release #desk", "/breaker release", "/breaker open",
    "/approvals", "/approvals all", "/approvals some", "/approve a1",
    '/approve a1 {"path": "b c"}', "/approve", "/approve a1 [1]", "/approve a1 {x",
    "/deny a1 not that one", "/deny",
    "/takeover bob", "/takeover bob 1h", "/takeover", "/takeover bob 3 days", "/takeover bob 2d",
    "/takeover bob soon", "/handback", "/handback bob", "/as bob hello there", "/as bob",
    "/spending", "/spending bob #desk 7", "/spending 7 @bob", "/spending 366", "/spending 367",
    "/requests all", "/why m4", "/why bob m4", "/why m4 bob", "/why bob", "/why m1 bob eve",
    "/interaction", "/interaction i4", "/interaction bob",
)  # fmt: skip
WORK_LINES = (
    "/react m5 👍", "/react m5", "/react five 👍", "/react m5 👍 👎", "/reakt m5 👍",
    "/edit m5 two\nlines", "/edit m5", "/delete m5", "/delete m5 yes", "/delete m5 no",
    "/history m5",
    '/search "hot rice" -soup', "/search", "/digest", "/digest 2026-03-01", "/digest mark",
    "/digest yesterday", "/find translate a contract", "/find",
    "/tasks", "/tasks mine", "/tasks ready", "/tasks board", "/tasks b3", "/tasks all",
    "/task T3", "/task 3", "/todo Write it down", "/todo", "/claim t3", "/done t3",
    "/done t3 it is in d1", "/done d1",
    '/poll "Is it?" a | b|c', "/poll Is it? a | b", "/poll Lunch soup | rice", "/poll Lunch? soup",
    "/vote p1 2", "/vote p1 2, 3", "/vote p1 hot rice | soup", "/vote p1 none", "/vote p1",
    "/vote 1 2", "/polls", "/polls p1", "/closepoll p1",
    "/files", "/files now", "/attach a.png", "/attach ~/a.png look here",
    '/attach "my plan.pdf" the plan', "/attach", "/get f1", '/get f1 "my plan.pdf"',
    "/get f1 out.csv", "/get a.png",
    "/docs", "/doc d1", "/doc d1 v2 :40", "/doc d1 2", "/diff d1", "/diff d1 1..3",
    "/diff d1 v1..v3", "/diff d1 2", "/diff d1 ..3", "/diff d1 x",
    "/title Lunch", "/title", "/resolve", "/reopen", "/mute", "/unmute",
)  # fmt: skip


def meaning(line: str, read: object = parse) -> str:
    assert callable(read)
    try:
        return repr(read(line, ALL))
    except UserError as error:
        return f"✗ {error}"


def meanings(lines: tuple[str, ...], read: object = parse) -> dict[str, str]:
    return {line: meaning(line, read) for line in lines}


def test_a_line_means_its_command_or_gets_one_sentence_with_how_to_write_it(
    snapshot: SnapshotAssertion,
) -> None:
    assert meanings(LINES) == snapshot(name="chat")
    wrong = [meaning(line) for line in (*LINES, *CONTROL_LINES, *WORK_LINES)]
    assert not any("\n" in told for told in wrong if told.startswith("✗"))
    for name, lines, specs in (("control", CONTROL_LINES, DEEDS), ("mods", WORK_LINES, WORKS)):
        found = meanings(lines)
        assert found == snapshot(name=name)
        assert {line[1:].split()[0] for line in lines} >= specs.keys()


@given(st.text(max_size=60))
def test_every_line_is_a_command_or_one_clear_sentence(line: str) -> None:
    try:
        command = parse(line)
    except UserError:
        assert line.strip().startswith("/")
    else:
        assert (command is None) == (not line.strip())
    if text := line.strip():
        assert parse(f"/{text}" if text.startswith("/") else text) == chat.Say(text)


@given(st.sampled_from(sorted(WORKS)), st.text(max_size=40))
def test_whatever_follows_a_command_of_a_mod_is_work_or_a_sentence(word: str, rest: str) -> None:
    with suppress(UserError):
        assert type(parse(f"/{word} {rest}", ALL)).__module__ == "hubbub.cli.workplace.works"


def test_every_command_explains_itself_and_none_hides_another() -> None:
    for name, spec in chat.COMMANDS.items():
        assert spec.usage.startswith(f"/{name}")
        assert spec.help
    assert not any(chat.COMMANDS[word] is not spec for word, spec in {**WORKS, **DEEDS}.items())


@pytest.mark.behaviour("M-310", "M-380")
def test_without_its_operation_a_command_is_not_there() -> None:
    for word in ("react", "todo", "docs"):
        told = f"/{word} is not to be had here: this network does not have the mod [a-z]+; add "
        with pytest.raises(UserError, match=told):
            parse(f"/{word} x", ALL - {WORKS[word].needs})
    with pytest.raises(UserError, match="there is no command /histroy; /help lists them"):
        parse("/histroy m5")
    told = unknown_operation("there is no operation 'list_polls'; did you mean list_models?") or ""
    assert "does not have the mod polls; add `- polls`" in told
    assert unknown_operation("there is no operation 'lst_polls'; did you mean list_polls?") is None


# Completion ---------------------------------------------------------------------------------------


def offered(session: Known, *lines: str) -> dict[str, str]:
    return {line: " ".join(one.text for one in candidates(line, session)) for line in lines}


def in_a_network() -> Session:
    """Ann's, in a network with some people and channels."""
    session = Session("ann")
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


def in_charge() -> Session:
    """Ann's, where something waits, is stopped, latched, taken over and at work."""
    answer = said(2).model_copy(update={"interaction_id": "i1", "cause_id": "m1", "hop": 1})
    session = begun(thread(said(1), answer))
    session.charge.note(approval())
    session.charge.stops = (stopped("agent", "bob"),)
    session.charge.latched = (latched("channel.desk"),)
    session.charge.takeovers = (takeover("bob", "ann"), takeover("concierge", "eve"))
    doing = {"state": "thinking", "turn": "bob-m4", "step": 1}
    session.hear(signal("activity", doing, sender="bob", thread="channel.general"), 0)
    return session


def with_mods() -> Session:
    """Ann's, where the hub has some mods."""
    names = ("toggle_reaction", "claim_task", "vote", "download_chunk", "begin_upload")
    operations = tuple(
        OperationInfo(name=name, description="", permission="write")
        for name in (*names, "edit_message")
    )
    file = Attachment(name="plan.pdf", uri="file:f3")
    messages = (said(1, "mine", sender="ann"), said(2).model_copy(update={"attachments": (file,)}))
    session = Session("ann", UTC)
    session.begin(ready(thread(*messages)).model_copy(update={"operations": operations}))
    session.open("channel.general")
    session.seen.note([("t1", "Write"), ("t12", "Print")])
    session.seen.offer("p1", ("soup", "rice"))
    session.seen.note([("p1", "Lunch?")])
    return session


@pytest.mark.behaviour("M-322")
def test_what_could_come_next_is_offered_best_first(snapshot: SnapshotAssertion) -> None:
    assert offered(
        in_a_network(),
        "/", "/q", "/jo", "/re", "@ca", "hello @con", "(@con", "@", "@ator", "mail@con", "@con ",
        "@@con", "plain text", "", "/dm c", "/dm @calc", "/dm calculator,c", "/dm calculator ,c",
        "/dm calculator hi @con", "/channel ", "/join ", "/join #de", "/leave g", "/reply ",
        "/reply m2 see @am", "/open ", "/open gen", "/who ", "/nonsense x",
    ) == snapshot(name="people, threads and messages")  # fmt: skip
    assert offered(
        in_charge(),
        "/stop ", "/stop a", "/stop agent ", "/stop turn ", "/stop thread #g", "/resume ",
        "/resume agent ", "/breaker ", "/breaker release ", "/approve ", "/deny a", "/approvals ",
        "/takeover c", "/handback ", "/as ", "/as bob hello @con", "/why ", "/why m2 ",
        "/interaction ", "/deny a1 because @bo",
    ) == snapshot(name="control")  # fmt: skip
    assert offered(
        with_mods(),
        "/reac", "/tas", "/react ", "/edit ", "/claim ", "/claim t12", "/vote ", "/vote p1 ",
        "/get ", "/tasks ",
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
    for found in candidates(before, begun(thread(said(1)))):
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
