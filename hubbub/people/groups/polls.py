"""Polls, votes and their results."""

from __future__ import annotations

from typing import Any

from hubbub.mods.polls.schemas import Poll, PollSummary, Voted
from hubbub.people.client import PersonClient
from hubbub.people.commands import Command, remember
from hubbub.people.figures import moment
from hubbub.people.shown import CommandResult, NoteLine, done, table
from hubbub.people.text import counted, one_line

__all__ = ["COMMANDS"]


def _until(poll: PollSummary) -> str:
    end = poll.closed_at or poll.deadline
    return "" if end is None else moment(end)


def result(found: Poll, person: PersonClient) -> list[NoteLine]:
    """A poll, its options, one's own marked, and the outcome."""
    poll = found.poll
    person.state.seen.offer(poll.id, tuple(option.text for option in found.options))
    secret = ", secret" if poll.secret else ""
    several = ", several options" if poll.multiple else ""
    until = f", until {_until(poll)}" if poll.deadline and not poll.closed_at else ""
    voted = counted(poll.voters, "vote", "votes")
    head = f"{poll.id} {poll.state}, {voted}{secret}{several}{until}: {one_line(poll.question)}"
    rows = (
        (
            "*" if option.number in found.mine else "",
            str(option.number),
            option.text,
            "" if option.votes is None else str(option.votes),
            ", ".join(option.voters),
        )
        for option in found.options
    )
    notes = [NoteLine(head), *table(("", "", "OPTION", "VOTES", ""), rows)]
    if found.outcome is not None:
        winners = f": {one_line(', '.join(found.winners))}" if found.winners else ""
        notes.append(NoteLine(f"{found.outcome.replace('_', ' ')}{winners}", "plain"))
    elif not found.mine:
        notes.append(NoteLine(f"{person.typed(f'polls vote {poll.id}')} <number> votes"))
    return notes


def asked(poll: PollSummary, person: PersonClient) -> list[NoteLine]:
    return done(f"{poll.id} is asked; {person.typed(f'polls show {poll.id}')} shows how it stands")


async def vote(person: PersonClient, given: dict[str, Any]) -> CommandResult:
    """Vote, or take the vote back, then show how the poll stands."""
    if given.get("options") in (None, [], ["none"]):
        await person.ask(Voted, "retract_vote", poll=given["poll"])
    else:
        await person.ask(Voted, "vote", poll=given["poll"], options=given["options"])
    value = await person.call("read_poll", poll=given["poll"])
    remember(person, value)
    return CommandResult(value, result(Poll.model_validate(value), person))


COMMANDS = (
    Command("polls list", "list_polls", columns=(
        "poll=id", "state", "voters", "deadline", "closed_at", "thread_id", "question")),
    Command("polls show", "read_poll", result),
    Command("polls ask", "create_poll", asked, here=True),
    Command("polls vote", "vote", do=vote,
            about="Vote for options or their numbers, in place of your last vote; or none."),
    Command("polls close", "close_poll", result),
)  # fmt: skip
