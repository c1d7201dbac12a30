"""How the chats read what somebody asks of mods. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from hubbub.cli.chat.specs import Spec, without_rest
from hubbub.cli.workplace import works
from hubbub.cli.workplace.works import Work
from hubbub.errors import UserError
from hubbub.ids import parse_message_id

__all__ = ["WORKS"]

W = TypeVar("W", bound=Work)

_KINDS = {"t": "task", "p": "poll", "f": "file", "d": "document", "b": "board"}
_QUOTED = re.compile(r"""(?P<quote>["'])(?P<text>.+?)(?P=quote)(?:\s+|$)""")
_RANGE = re.compile(r"(?:v?(?P<old>[1-9]\d{0,8}))?(?P<to>\.\.(?:v?(?P<new>[1-9]\d{0,8}))?)?")


def _first(rest: str) -> tuple[str, str]:
    word, _, more = rest.partition(" ")
    return word, more.strip()


def _is(kind: str, word: str) -> bool:
    return re.fullmatch(rf"{kind}[1-9]\d{{0,17}}", word) is not None


def _id(kind: str, word: str) -> str:
    """`t3`, `T3`: what is called so."""
    if _is(kind, word.lower()):
        return word.lower()
    raise UserError(f"takes a {_KINDS[kind]}'s id such as {kind}3")


def _message(word: str) -> str:
    if parse_message_id(word) is None:
        raise UserError("takes a message's id")
    return word


def _one(kind: str, made: Callable[[str], W]) -> Callable[[str], W]:
    """Reads a command that takes one thing of this kind."""
    return lambda rest: made(_id(kind, rest))


# Messages and threads -----------------------------------------------------------------------------


def _react(rest: str) -> works.React:
    message, emoji = _first(rest)
    if not emoji or " " in emoji:
        raise UserError("takes a message's id and one emoji")
    return works.React(_message(message), emoji)


def _edit(rest: str) -> works.Edit:
    message, text = _first(rest)
    if not text:
        raise UserError("takes a message's id and what it says from now on")
    return works.Edit(_message(message), text)


def _delete(rest: str) -> works.Delete:
    message, sure = _first(rest)
    if sure not in ("", "yes"):
        raise UserError("takes a message's id, and perhaps yes")
    return works.Delete(_message(message), sure == "yes")


def _history(rest: str) -> works.History:
    return works.History(_message(rest))


# Finding ------------------------------------------------------------------------------------------


def _digest(rest: str) -> works.Digest:
    if rest == "mark":
        return works.Digest(mark=True)
    if rest and not rest[0].isdecimal():
        raise UserError("takes nothing, a time such as 2026-03-01, or mark")
    return works.Digest(rest) if rest else works.Digest()


def _find(rest: str) -> works.Find:
    if not rest:
        raise UserError("takes what must be done, in a few words")
    return works.Find(rest)


# Tasks and polls ----------------------------------------------------------------------------------


def _tasks(rest: str) -> works.Tasks | works.Board:
    match rest:
        case "":
            return works.Tasks()
        case "mine":
            return works.Tasks(mine=True)
        case "ready":
            return works.Tasks(ready=True)
        case "board":
            return works.Board()
    if not _is("b", rest):
        raise UserError("takes nothing, mine, ready, board, or a board's id such as b3")
    return works.Board(rest)


def _todo(rest: str) -> works.CreateTask:
    if not rest:
        raise UserError("takes what is to be done, in one line")
    return works.CreateTask(rest)


def _done(rest: str) -> works.Finish:
    task, result = _first(rest)
    return works.Finish(_id("t", task), result)


def _poll(rest: str) -> works.CreatePoll:
    """A question in quotes, or one that ends with a question mark; then options."""
    quoted = _QUOTED.match(rest)
    if quoted is not None:
        question, listed = quoted["text"], rest[quoted.end() :]
    else:
        before, mark, listed = rest.partition("?")
        question = before.strip() + mark
    options = tuple(option for option in map(str.strip, listed.split("|")) if option)
    if not question.strip() or len(options) < 2:
        raise UserError("takes a question, and options with | between them")
    return works.CreatePoll(question.strip(), options)


def _vote(rest: str) -> works.Vote:
    poll, said = _first(rest)
    if not said:
        raise UserError("takes a poll's id and what you vote for, or none")
    words = re.split(r"[\s,]+", said)
    if all(word.isdecimal() for word in words):
        return works.Vote(_id("p", poll), tuple(words))
    options = () if said == "none" else tuple(filter(None, map(str.strip, said.split("|"))))
    return works.Vote(_id("p", poll), options)


def _polls(rest: str) -> works.Polls | works.Poll:
    return works.Poll(_id("p", rest)) if rest else works.Polls()


# Files and documents ------------------------------------------------------------------------------


def _attach(rest: str) -> works.Attach:
    """A path, in quotes if there is a space in it."""
    quoted = _QUOTED.match(rest)
    path, text = (quoted["text"], rest[quoted.end() :]) if quoted else _first(rest)
    if not path:
        raise UserError("takes a file of this machine, and perhaps a text")
    return works.Attach(path, text.strip())


def _get(rest: str) -> works.Get:
    file, path = _first(rest)
    quoted = _QUOTED.fullmatch(path)
    return works.Get(_id("f", file), quoted["text"] if quoted else path)


def _document(rest: str) -> works.Document:
    document, more = _first(rest)
    version, line = None, 1
    for word in more.split():
        found = re.fullmatch(r"(?P<what>[v:])(?P<number>[1-9]\d{0,8})", word)
        if found is None:
            raise UserError("takes a document's id, and perhaps a version (v2) and a line (:40)")
        if found["what"] == "v":
            version = int(found["number"])
        else:
            line = int(found["number"])
    return works.Document(_id("d", document), version, line)


def _diff(rest: str) -> works.Diff:
    document, range_ = _first(rest)
    found = _RANGE.fullmatch(range_)
    if found is None:
        raise UserError("takes a document's id, and perhaps versions such as 1..2")
    old, new = (None if found[name] is None else int(found[name]) for name in ("old", "new"))
    return works.Diff(_id("d", document), old, new)


WORKS: dict[str, Spec[Work]] = {
    "react": Spec(
        "/react <m42> <emoji>", "react, or take your reaction back", _react, "toggle_reaction"
    ),
    "edit": Spec("/edit <m42> <text>", "change what you have said", _edit, "edit_message"),
    "delete": Spec(
        "/delete <m42> [yes]", "delete what you have said; asks first", _delete, "delete_message"
    ),
    "history": Spec(
        "/history <m42>", "what a message said before it was edited", _history, "message_history"
    ),
    "search": Spec(
        "/search [words]", "search; without words, what comes next", works.Search, "search"
    ),
    "digest": Spec(
        "/digest [time or mark]", "what is new since your last mark, or a time", _digest, "digest"
    ),
    "find": Spec("/find <need>", "who can do something", _find, "find_agent"),
    "tasks": Spec(
        "/tasks [mine, ready, board, b3]", "tasks; or a board by state", _tasks, "list_tasks"
    ),
    "task": Spec("/task <t3>", "a task and what became of it", _one("t", works.Task), "read_task"),
    "todo": Spec("/todo <title>", "a new task on the board of this thread", _todo, "create_task"),
    "claim": Spec("/claim <t3>", "take a task", _one("t", works.Claim), "claim_task"),
    "done": Spec("/done <t3> [result]", "a task is done", _done, "finish_task"),
    "poll": Spec(
        '/poll "question" <a> | <b>', "ask those who read this thread", _poll, "create_poll"
    ),
    "vote": Spec("/vote <p3> <numbers or a | b>", "vote; with none, take it back", _vote, "vote"),
    "polls": Spec("/polls [p3]", "polls; or one, and how it stands", _polls, "list_polls"),
    "closepoll": Spec(
        "/closepoll <p3>", "end a poll of yours", _one("p", works.ClosePoll), "close_poll"
    ),
    "files": Spec("/files", "files of this thread", without_rest(works.Files), "list_files"),
    "attach": Spec("/attach <path> [text]", "send a file here", _attach, "begin_upload"),
    "get": Spec("/get <f3> [path]", "save a file; nothing is replaced", _get, "download_chunk"),
    "docs": Spec(
        "/docs", "documents of this thread", without_rest(works.Documents), "list_documents"
    ),
    "doc": Spec("/doc <d3> [v2] [:40]", "a document, from a line on", _document, "read_document"),
    "diff": Spec(
        "/diff <d3> [1..2]", "what changed; without versions, at last", _diff, "diff_document"
    ),
    "title": Spec("/title [text]", "what this thread is called", works.Title, "set_thread_title"),
    "resolve": Spec(
        "/resolve", "this thread is done with", without_rest(works.Resolve), "resolve_thread"
    ),
    "reopen": Spec(
        "/reopen",
        "this thread is not done with",
        without_rest(lambda: works.Resolve(False)),
        "reopen_thread",
    ),
    "mute": Spec(
        "/mute", "only mentions here call for you", without_rest(works.Mute), "mute_thread"
    ),
    "unmute": Spec(
        "/unmute",
        "all here calls for you",
        without_rest(lambda: works.Mute(False)),
        "unmute_thread",
    ),
}
"""By the words of the chat; each is there where the hub offers the operation that it needs."""
