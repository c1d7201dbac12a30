"""Results and signals of mods as text that is safe for a terminal."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from hubbub.errors import UserError
from hubbub.mods.digest.schemas import Digest
from hubbub.mods.documents.schemas import DocumentDiff
from hubbub.mods.search.schemas import SearchHits
from hubbub.people.client import PersonClient
from hubbub.people.commands import CHAT, all_commands
from hubbub.people.commands import shown as viewed
from hubbub.people.figures import size_text
from hubbub.people.groups.documents import difference
from hubbub.people.groups.files import free_path, local_file
from hubbub.people.groups.messages import _digest, _hits
from hubbub.people.messages import attachment_text, file_id
from hubbub.people.notices import MOST as SEEN
from hubbub.people.notices import MOST_REACTIONS, KnownIds, notice
from hubbub.people.shown import NoteLine
from hubbub.people.state import KEPT, ClientState, ClientThread
from hubbub.people.text import visible
from hubbub.protocol.messages import Amendment, Attachment, Message
from tests.unit.people.chatting import NOON, event, new_session, posted, shown, signal, thread

EVIL = "a\x1b[2J\u202eb\nc"
"""Clears the screen, reverses the text and starts a line."""


def amending(seq: int, of: int, text: str = "", sender: str = "bob") -> Message:
    kind = "edited" if text else "deleted"
    amends = Amendment.model_validate({"message_id": f"m{of}", "kind": kind})
    return posted(seq, text, sender=sender).model_copy(update={"amends": amends})


# Edits and deletions ------------------------------------------------------------------------------


@pytest.mark.behaviour("M-311")
def test_an_edit_in_the_open_thread_is_one_line_and_not_a_message() -> None:
    session = new_session(thread(posted(1, "yse"), posted(2, "oops")))
    assert shown(session.take(event(amending(3, 1, "yes")))) == ["m1 bob edited: yes"]
    assert shown(session.take(event(amending(4, 2)))) == ["m2 bob deleted it"]
    assert session.unread == []
    opened = shown(session.open("channel.general"))[1:]
    assert opened == ["12:01 m1 bob [edited]: yes", "12:02 m2 bob [deleted]: "]
    assert session.thread("channel.general").last is not None


@pytest.mark.behaviour("M-311")
def test_an_edit_in_another_thread_is_neither_shown_nor_counted() -> None:
    dm = "dm.ann.bob"
    session = new_session(thread(posted(1)), thread(posted(2, "hi", thread=dm, tseq=1), read=0))
    edit = amending(3, 2, "hello").model_copy(update={"thread_id": dm, "tseq": 2})
    assert session.take(event(edit)) == []
    assert session.unread == ["@bob 1"]
    assert "bob: hello" in shown(session.lists())[0]


def test_a_message_fetched_later_has_its_latest_text() -> None:
    history = ClientThread("channel.general")
    history.add([amending(8, 2, "third"), amending(5, 2, "second")])
    history.add([posted(2, "first"), posted(3)])
    assert history.messages[2].text == "third"
    assert (history.oldest, history.first, history.count, history.unread) == (2, 2, 6, 6)
    history.read = 5
    assert history.unread == 2, "edits never count"


def test_edits_of_dropped_messages_are_dropped() -> None:
    history = ClientThread("channel.general")
    for message in (posted(1), amending(2, 1, "x"), *map(posted, range(3, KEPT + 4))):
        history.append(message)
    assert (len(history.messages), history.amendments, history.more) == (KEPT, {}, True)


# Reactions and other signals ----------------------------------------------------------------------


def reacted(by: str = "bob", kind: str = "added", count: int = 1) -> object:
    reactions = [{"emoji": "👍", "count": count, "who": [by], "more": False}] if count else []
    data = {"message_id": "m1", "thread_id": "channel.general", "tseq": 1, "reactions": reactions}
    return {"kind": kind, "data": {**data, "by": by, "emoji": "👍"}}


@pytest.mark.behaviour("M-312")
def test_a_reaction_is_one_line_and_appears_below_its_message() -> None:
    session = new_session(thread(posted(1)))
    general = "channel.general"
    lines = session.signalled(signal("mod.reactions", reacted(count=2), thread=general))
    assert lines == [NoteLine("m1 bob reacted with 👍 (👍 2)")]
    assert shown(session.open(general))[1] == "12:01 m1 bob: hi\n      👍 2"
    assert session.signalled(signal("mod.reactions", reacted("ann"), thread=general)) == []
    lines = session.signalled(
        signal("mod.reactions", reacted(kind="removed", count=0), thread=general)
    )
    assert lines == [NoteLine("m1 bob removed 👍")]
    assert shown(session.open(general))[1] == "12:01 m1 bob: hi"


def test_malformed_and_forged_signals_are_ignored() -> None:
    session = new_session(thread(posted(1)))
    strange: list[object] = [None, [], {"kind": "added"}, {"kind": "added", "data": {"by": 1}}]
    for data in strange:
        assert session.signalled(signal("mod.reactions", data, thread="channel.general")) == []
        assert session.signalled(signal("mod.tasks", data, thread="channel.general")) == []
    forged = signal("mod.reactions", reacted(), sender="bob", thread="channel.general")
    assert session.signalled(forged) == []


def test_cached_ids_and_reactions_are_bounded() -> None:
    seen = KnownIds()
    for n in range(MOST_REACTIONS + 5):
        seen.react(f"m{n}", [("👍", 1)])
    assert (seen.reactions("m4"), seen.reactions("m5")) == ("", "👍 1")
    seen.note((f"t{n}", "") for n in range(1, SEEN + 11))
    assert len(seen.of("t")) == SEEN
    assert seen.of("t")[0][0] == f"t{SEEN + 10}"


def test_only_signals_that_concern_the_person_become_notices() -> None:
    task = {"by": "bob", "task": "t1", "title": "x"}
    cases: tuple[tuple[str, str, dict[str, str], str | None], ...] = (
        ("tasks", "created", {**task, "owner": "ann"}, "bob assigned you t1: x"),
        ("tasks", "assigned", {**task, "owner": "eve"}, None),
        ("tasks", "claimed", {**task, "owner": "bob"}, None),
        ("polls", "voted", {"by": "bob", "poll": "p1", "question": "x"}, None),
        ("documents", "changed", {"by": "bob", "id": "d1", "title": "x"}, None),
        ("threads", "resolved", {"resolved_by": "bob"}, "bob resolved this thread"),
        ("threads", "titled", {"titled_by": "bob", "title": "x"}, "bob titled this thread: x"),
        ("threads", "titled", {"titled_by": "ann", "title": "x"}, None),
        ("other", "created", {"by": "bob"}, None),
    )
    for mod, kind, data, text in cases:
        received = signal(f"mod.{mod}", {"kind": kind, "data": data}, thread="channel.general")
        line = notice(received, "ann", KnownIds())
        assert (None if line is None else line.text) == text


def test_an_assignment_is_shown_from_other_threads_too() -> None:
    session = new_session(thread(posted(1)))
    session.open("broadcast")
    data = {"by": "bob", "owner": "ann", "task": "t1", "title": "x"}
    created = signal("mod.tasks", {"kind": "created", "data": data}, thread="channel.general")
    assert session.signalled(created) == [NoteLine("[#general] bob assigned you t1: x")]
    resolved = {"kind": "resolved", "data": {"resolved_by": "bob"}}
    assert session.signalled(signal("mod.threads", resolved, thread="channel.general")) == []
    assert session.signalled(signal("mod.reactions", reacted(), thread="channel.general")) == []


# Files --------------------------------------------------------------------------------------------


@pytest.mark.behaviour("M-315")
def test_a_file_is_shown_with_id_type_and_size() -> None:
    file = Attachment(name="a.md", uri="file:f3", media_type="text/markdown", size=1234)
    assert attachment_text(file) == "[f3 a.md, text/markdown, 1.2 kB]"
    gone = file.model_copy(update={"gone": True})
    assert attachment_text(gone) == "[f3 a.md, deleted]"
    elsewhere = file.model_copy(update={"uri": "file:///a.md"})
    assert (attachment_text(elsewhere), file_id(elsewhere)) == ("[a.md: file:///a.md]", None)
    sizes = [size_text(size) for size in (1, 999, 25_000_000)]
    assert sizes == ["1 byte", "999 bytes", "25.0 MB"]


@pytest.mark.behaviour("M-316")
def test_a_file_is_only_saved_to_a_free_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.txt").write_text("mine")
    (tmp_path / "link.txt").symlink_to(tmp_path / "nowhere")
    (tmp_path / "folder").mkdir()
    assert free_path("", "a.txt") == Path("a.txt")
    assert free_path("folder", "a.txt") == Path("folder/a.txt")
    assert free_path(".hidden", "a.txt") == Path(".hidden"), "it was requested"
    for path, name, reason in (
        ("", "there.txt", "already exists"),
        ("there.txt", "a.txt", "already exists"),
        ("", "link.txt", "already exists"),
        ("", "../a.txt", "name a path to write to"),
        ("", "/etc/a", "name a path to write to"),
        ("", ".profile", "would be a hidden file"),
        ("folder", ".profile", "would be a hidden file"),
        ("none/a.txt", "a.txt", "no such folder"),
    ):
        with pytest.raises(UserError, match=reason):
            free_path(path, name)
    with pytest.raises(UserError, match="no such file"):
        local_file(str(tmp_path / "none"))
    with pytest.raises(UserError, match="not a regular file"):
        local_file(str(tmp_path))


# Untrusted text -----------------------------------------------------------------------------------


def _evil_notes() -> list[NoteLine]:
    task = {
        "id": "t1", "title": EVIL, "board": "b1", "thread_id": "x", "state": "open", "owner": EVIL,
        "priority": "high", "labels": [EVIL], "overdue": False, "depends_on": [], "waits_for": [],
        "created_by": "bob", "created_at": NOON, "changed_at": NOON, "version": 1,
    }  # fmt: skip
    change = {"version": 1, "at": NOON, "by": EVIL, "what": "created", "note": EVIL}
    details = {"task": task, "description": EVIL, "result": EVIL, "history": [change], "more": True}
    poll = {
        "id": "p1", "thread_id": "x", "question": EVIL, "state": "closed", "secret": True,
        "multiple": True, "quorum": 0, "created_by": "bob", "created_at": NOON, "voters": 1,
        "deadline": NOON,
    }  # fmt: skip
    option = {"number": 1, "text": EVIL, "votes": 1, "voters": [EVIL]}
    ended = {"poll": poll, "options": [option], "mine": [1], "outcome": "tie", "winners": [EVIL]}
    file = {
        "id": "f1", "name": EVIL, "media_type": EVIL, "size": 1, "sha256": "0", "uploaded_by": EVIL,
        "at": NOON,
    }  # fmt: skip
    document = {
        "id": "d1", "title": EVIL, "thread_id": "x", "version": 2, "created_by": "bob",
        "created_at": NOON,
    }  # fmt: skip
    text = {"document": document, "version": 1, "text": EVIL, "first": 1, "last": 2, "lines": 9}
    diff = {"document": document, "old": 1, "new": 2, "diff": f"+{EVIL}", "cut": True}
    hit = {
        "kind": "files", "id": "f1", "thread_id": "x", "by": "bob", "at": NOON, "snippet": EVIL,
        "title": EVIL,
    }  # fmt: skip
    line = {"id": "m1", "by": "bob", "at": NOON, "text": EVIL}
    of_thread = {
        "thread_id": "x", "type": "channel", "count": 2, "counted": True, "mentions": 1,
        "speakers": [{"id": "bob", "count": 2}], "first": line, "last": line,
    }  # fmt: skip
    waiting = {"kind": "other", "id": "t1", "thread_id": "x", "by": "", "text": EVIL}
    digest = {
        "threads": [of_thread, {**of_thread, "summary": EVIL}], "more": True, "waiting": [waiting],
        "decided": [EVIL], "upto": 1, "note": "n",
    }  # fmt: skip
    agent = {"id": "bob", "kind": "agent", "present": True, "description": EVIL, "why": [EVIL]}
    hits = {"hits": [hit], "more": True, "indexing": True, "note": "n"}
    person = PersonClient(None, ClientState("ann"), CHAT, here=True)  # type: ignore[arg-type]
    version = {"seq": 1, "kind": "sent", "by": EVIL, "at": NOON, "content": EVIL}
    answers: dict[str, Any] = {
        "tasks list": {"tasks": [task], "more": True}, "tasks show": details, "polls show": ended,
        "files list": {"files": [file], "more": True}, "documents show": text,
        "messages history": {"message_id": "m1", "versions": [version], "more": True},
        "agents find": {"agents": [agent], "more": False},
    }  # fmt: skip
    commands = {command.path: command for command in all_commands()}
    values = json.loads(json.dumps(answers, default=datetime.isoformat))
    notes = [n for path, value in values.items() for n in viewed(commands[path], value, person)]
    model = DocumentDiff.model_validate(diff)
    return [*notes, *difference(model), *_hits(SearchHits.model_validate(hits), person),
            *_digest(Digest.model_validate(digest), person, marked=False)]  # fmt: skip


@pytest.mark.behaviour("M-320")
def test_no_text_in_a_result_controls_the_terminal_or_starts_a_line() -> None:
    notes = _evil_notes()
    assert len(notes) > 30
    for note, line in zip(notes, shown([*notes]), strict=True):
        assert line == visible(line), "every character is visible"
        assert "\n" not in note.text, "one note is one line"
        assert not note.text.startswith("c"), "an untrusted line is indented"


@pytest.mark.behaviour("M-320")
def test_edits_and_file_names_are_escaped() -> None:
    session = new_session(thread(posted(1)))
    lines = shown(session.take(event(amending(2, 1, EVIL))))
    assert lines == ["m1 bob edited: a<U+001B>[2J<U+202E>b\n      c"]
    file = Attachment(name=EVIL, uri="file:f3", media_type=EVIL)
    assert attachment_text(file) == "[f3 {0}, {0}]".format("a<U+001B>[2J<U+202E>b c")
