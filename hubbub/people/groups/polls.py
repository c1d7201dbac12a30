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


def result(answer: Poll, person: PersonClient) -> list[NoteLine]:
    """A poll with its options, the person's votes marked, and its outcome."""
    poll = answer.poll
    person.state.known_ids.offer(poll.id, tuple(option.text for option in answer.options))
    secret = ", secret" if poll.secret else ""
    several = ", several options" if poll.multiple else ""
    until = f", until {_until(poll)}" if poll.deadline and not poll.closed_at else ""
    voted = counted(poll.voters, "vote", "votes")
    head = f"{poll.id} {poll.state}, {voted}{secret}{several}{until}: {one_line(poll.question)}"
    rows = (
        (
            "*" if option.number in answer.mine else "",
            str(option.number),
            option.text,
            "" if option.votes is None else str(option.votes),
            ", ".join(option.voters),
        )
        for option in answer.options
    )
    notes = [NoteLine(head), *table(("", "", "OPTION", "VOTES", ""), rows)]
    if answer.outcome is not None:
        winners = f": {one_line(', '.join(answer.winners))}" if answer.winners else ""
        notes.append(NoteLine(f"{answer.outcome.replace('_', ' ')}{winners}", "plain"))
    elif not answer.mine:
        notes.append(NoteLine(f"vote with `{person.typed(f'polls vote {poll.id}')} <number>`"))
    return notes


def asked(poll: PollSummary, person: PersonClient) -> list[NoteLine]:
    return done(f"created {poll.id}; `{person.typed(f'polls show {poll.id}')}` shows the votes")


async def vote(person: PersonClient, given: dict[str, Any]) -> CommandResult:
    """Vote, or retract the vote, then show the poll."""
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
            about="Vote for options by text or number, replacing your vote; or none."),
    Command("polls close", "close_poll", result),
)  # fmt: skip
