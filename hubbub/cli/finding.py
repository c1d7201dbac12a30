"""`search` (mod `search`) and `digest` (mod `digest`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.chat.text import one_line, visible
from hubbub.cli.desk import Desk, day_time
from hubbub.cli.joining import AddressOption, AsOption, TokenOption
from hubbub.cli.naming import label
from hubbub.cli.output import JsonFlag, counted, emit_json

if TYPE_CHECKING:
    from hubbub.mods.digest.schemas import Digest, ThreadDigest

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    app.command()(search)
    app.command()(digest)


def search(
    query: Annotated[
        list[str], typer.Argument(help='Words, "a phrase" in quotes, -word for not, begin*.')
    ],
    thread: Annotated[
        str | None, typer.Option("--thread", "-t", help="Only in a thread: #general, @bob.")
    ] = None,
    by: Annotated[str | None, typer.Option("--by", help="Only what this participant said.")] = None,
    after: Annotated[
        str | None, typer.Option("--after", help="From this day or time on, UTC: 2026-03-01.")
    ] = None,
    before: Annotated[str | None, typer.Option("--before", help="Before this day or time.")] = None,
    kinds: Annotated[
        list[str] | None,
        typer.Option("--kind", "-k", help="messages, documents or files; may be repeated."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=50)] = 10,
    cursor: Annotated[str, typer.Option("--cursor", help="For the next page.")] = "",
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Search your messages, documents and files (mod search). The best hits come first.

    Put a query with -words into quotes as a whole, so that they are not taken for options.
    """
    from hubbub.mods.search.schemas import SearchHits

    desk = Desk.of(as_, address, token)
    found = desk.ask(
        SearchHits,
        "search",
        thread=thread,
        query=_query(query),
        by=by,
        after=after,
        before=before,
        kinds=kinds or (),
        limit=limit,
        cursor=cursor,
    )
    if as_json:
        emit_json(found)
        return
    for hit in found.hits:
        place = label(hit.thread_id, desk.person)
        head = (hit.id, day_time(hit.at), hit.by, place, hit.title)
        typer.echo("  ".join(one_line(each) for each in head if each))
        typer.echo(f"    {one_line(hit.snippet)}")
    if not found.hits:
        typer.echo("nothing found")
    if found.indexing:
        typer.echo("earlier messages are still being indexed: some may be missing")
    if found.note:
        typer.echo(visible(found.note))
    if found.more:
        typer.echo(f"there is more: --cursor {found.cursor}")


def _query(words: list[str]) -> str:
    """A word with blanks was quoted in the shell: it is a phrase."""
    quoted = (f'"{word}"' if " " in word and '"' not in word else word for word in words)
    return words[0] if len(words) == 1 else " ".join(quoted)


def digest(
    since: Annotated[
        str, typer.Option("--since", help="last_visit, or a day or time, UTC: 2026-03-01.")
    ] = "last_visit",
    threads: Annotated[
        list[str] | None,
        typer.Option("--thread", "-t", help="Only this thread (#general, @bob); may be repeated."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=50)] = 10,
    mark: Annotated[
        bool, typer.Option("--mark", help="The next digest begins behind this one.")
    ] = False,
    summaries: Annotated[
        bool, typer.Option("--summaries/--no-summaries", help="Summaries by a model, if any.")
    ] = True,
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Tell what happened since your last visit (mod digest), thread by thread."""
    from hubbub.mods.digest.schemas import Digest, Visit

    desk = Desk.of(as_, address, token)
    found = desk.ask(
        Digest,
        "digest",
        since=since,
        threads=[_named(thread) for thread in threads or ()],
        limit=limit,
        summaries=summaries,
    )
    if mark:
        desk.ask(Visit, "mark_visit", upto=found.upto)
    if as_json:
        emit_json(found)
    else:
        _print(found, desk.person)


def _named(thread: str) -> str:
    """A thread as people type it, as the hub knows it."""
    return f"channel_{thread[1:]}" if thread.startswith("#") else thread.removeprefix("@")


def _print(found: Digest, reader: str) -> None:
    for waits in found.waiting:
        by = f" from {waits.by}" if waits.by else ""
        typer.echo(one_line(f"! {waits.kind} {waits.id}{by}: {waits.text}"))
    for decided in found.decided:
        typer.echo(one_line(f"* {decided}"))
    for thread in found.threads:
        typer.echo(one_line(_head(thread, reader)))
        if thread.summary:
            typer.echo(f"    {one_line(thread.summary)}")
            continue
        lines = [thread.first, thread.last] if thread.count > 1 else [thread.first]
        for line in lines:
            typer.echo(f"    {line.id} {line.by}: {one_line(line.text)}")
    if not (found.threads or found.waiting or found.decided):
        typer.echo("nothing new")
    if found.more:
        typer.echo("there is more: see --limit")
    if found.note:
        typer.echo(one_line(found.note))


def _head(thread: ThreadDigest, reader: str) -> str:
    count = counted(thread.count, "message", "messages")
    more = "" if thread.counted else "more than "
    mentions = f", {counted(thread.mentions, 'mention', 'mentions')}" if thread.mentions else ""
    who = ", ".join(f"{each.id} {each.count}" for each in thread.speakers)
    return f"{label(thread.thread_id, reader)}: {more}{count}{mentions} ({who})"
