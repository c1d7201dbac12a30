"""Inputs and outputs of the mod `polls`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from hubbub.mods.fields import At, Line, ListInput, Moment, Texts, id_pattern
from hubbub.protocol.messages import Model, ThreadRef
from hubbub.protocol.operations import Input

PollId = Annotated[str, Field(pattern=id_pattern("p"))]
Outcome = Literal["decided", "tie", "no_quorum", "no_votes"]


def _as_text(value: object) -> object:
    """The number of an option, as it may be written, too."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Option = Annotated[str, Field(max_length=200, pattern=Line)]
Choice = Annotated[str, BeforeValidator(_as_text), Field(min_length=1, max_length=200)]


# What is asked ----------------------------------------------------------------------------------


class CreatePoll(Input):
    thread: ThreadRef
    """Who reads this thread may vote, and gets the result."""
    question: Annotated[str, Field(max_length=500, pattern=Line)]
    """What is asked, in one line."""
    options: Annotated[tuple[Option, ...], Field(min_length=2, max_length=20, fail_fast=True)]
    """What can be voted for."""
    deadline: Moment | None = None
    """When it ends by itself; left out: when you close it."""
    secret: bool = False
    """Whether votes stay secret, and the counts until the end."""
    multiple: bool = False
    """Whether one may vote for several options."""
    quorum: Annotated[int, Field(ge=0, le=100_000)] = 0
    """How many must have voted for the result to count."""


class PollOf(Input):
    poll: PollId
    """The poll."""


class Vote(PollOf):
    options: Annotated[tuple[Choice, ...], Field(min_length=1, max_length=20, fail_fast=True)]
    """What you vote for: the texts of options, or their numbers. It takes the place of what you
    have voted for before."""


class ListPolls(ListInput):
    state: Literal["open", "closed"] | None = None
    """Only those in this state."""
    before: PollId | None = None


# What is answered -------------------------------------------------------------------------------


class PollSummary(Model):
    id: str
    thread_id: str
    question: str
    options: Texts = ()
    state: Literal["open", "closed"]
    secret: bool
    multiple: bool
    quorum: int
    created_by: str
    created_at: At
    deadline: At | None = None
    closed_at: At | None = None
    closed_by: str | None = None
    """`hub`: its deadline has."""
    voters: int = 0
    """How many have voted."""


class PollOption(Model):
    number: int
    """From 1 on."""
    text: str
    votes: int | None = None
    """None: it is secret, and has not ended."""
    voters: tuple[str, ...] = ()
    """Who votes for it: the first hundred by name. Of a secret poll nobody."""


class Poll(Model):
    poll: PollSummary
    options: tuple[PollOption, ...]
    mine: tuple[int, ...]
    """The numbers that you vote for. After the end of a secret poll nobody knows them."""
    outcome: Outcome | None = None
    """None: it has not ended."""
    winners: tuple[str, ...]
    """The options with most votes, if it has ended, and enough have voted."""


class Polls(Model):
    polls: tuple[PollSummary, ...]
    """Latest first."""
    more: bool
    """Whether there are earlier ones: ask again with `before`."""


class Voted(Model):
    poll: str
    options: tuple[int, ...]
    """The numbers that you vote for by now."""
