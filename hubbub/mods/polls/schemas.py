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
    """Options can also be given by number."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Option = Annotated[str, Field(max_length=200, pattern=Line)]
Choice = Annotated[str, BeforeValidator(_as_text), Field(min_length=1, max_length=200)]


# Inputs -----------------------------------------------------------------------------------------


class CreatePoll(Input):
    thread: ThreadRef
    """Participants who read this thread can vote, and receive the result."""
    question: Annotated[str, Field(max_length=500, pattern=Line)]
    """The question, in one line."""
    options: Annotated[tuple[Option, ...], Field(min_length=2, max_length=20, fail_fast=True)]
    """The options to choose from."""
    deadline: Moment | None = None
    """When the poll ends. Default: when you close it."""
    secret: bool = False
    """Whether votes are secret. The counts are then hidden until the poll ends."""
    multiple: bool = False
    """Whether participants can vote for several options."""
    quorum: Annotated[int, Field(ge=0, le=100_000)] = 0
    """Minimum number of voters for a valid result."""


class PollOf(Input):
    poll: PollId
    """The poll."""


class Vote(PollOf):
    options: Annotated[tuple[Choice, ...], Field(min_length=1, max_length=20, fail_fast=True)]
    """The options you vote for, by text or number. They replace your previous vote."""


class ListPolls(ListInput):
    state: Literal["open", "closed"] | None = None
    """Only polls in this state."""
    before: PollId | None = None


# Outputs ----------------------------------------------------------------------------------------


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
    """`hub` if the poll ended at its deadline."""
    voters: int = 0
    """Number of participants who voted."""


class PollOption(Model):
    number: int
    """Starts at 1."""
    text: str
    votes: int | None = None
    """None while a secret poll is open."""
    voters: tuple[str, ...] = ()
    """The first hundred voters, sorted by id. Empty for a secret poll."""


class Poll(Model):
    poll: PollSummary
    options: tuple[PollOption, ...]
    mine: tuple[int, ...]
    """The numbers of the options you voted for. Deleted when a secret poll ends."""
    outcome: Outcome | None = None
    """None while the poll is open."""
    winners: tuple[str, ...]
    """The options with the most votes, if the poll has ended and met its quorum."""


class Polls(Model):
    polls: tuple[PollSummary, ...]
    """Latest first."""
    more: bool
    """Whether there are earlier ones. To get them, call again with `before`."""


class Voted(Model):
    poll: str
    options: tuple[int, ...]
    """The numbers of the options you now vote for."""
