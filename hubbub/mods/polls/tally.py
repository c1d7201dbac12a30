"""What has come of a poll. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hubbub.mods.polls.words import Outcome

__all__ = ["Result", "result_of", "result_text"]


class Result(NamedTuple):
    outcome: Outcome
    winners: Sequence[int]
    """The places of the options with most votes; empty without a quorum or votes."""


def result_of(votes: Sequence[int], voters: int, quorum: int) -> Result:
    """The result of the votes for each option."""
    if voters == 0:
        return Result("no_votes", ())
    if voters < quorum:
        return Result("no_quorum", ())
    most = max(votes)
    winners = [place for place, count in enumerate(votes) if count == most]
    return Result("decided" if len(winners) == 1 else "tie", winners)


def result_text(
    question: str, options: Sequence[str], votes: Sequence[int], voters: int, quorum: int
) -> str:
    """The result as the thread reads it."""
    outcome, winners = result_of(votes, voters, quorum)
    names = [f'"{options[place]}"' for place in winners]
    match outcome:
        case "decided":
            head = names[0]
        case "tie":
            head = f"a tie between {', '.join(names[:-1])} and {names[-1]}"
        case "no_quorum":
            head = f"no result, for {voters} have voted and {quorum} were needed"
        case "no_votes":
            head = "nobody has voted"
    ranked = sorted(zip(votes, options, strict=True), key=lambda each: -each[0])
    counts = "".join(f"\n- {text}: {count}" for count, text in ranked) if voters else ""
    return f'The poll "{question}" has ended: {head}.{counts}'
