"""Notices for limits that refused something: one for each, with the remedy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from pydantic import JsonValue

from hubbub.config.budgets import LoopLimitConfig
from hubbub.ids import interaction_id, message_id
from hubbub.network.services.budgets.account import BudgetAccount
from hubbub.network.services.budgets.daily import ReachedLimit
from hubbub.network.services.budgets.policy import PolicyResult
from hubbub.network.threads import Thread, Threads
from hubbub.network.wakes import SENTENCES, Reason
from hubbub.protocol.spending import LimitName, Whose

if TYPE_CHECKING:
    from hubbub.network.log import Entry

__all__ = ["BudgetNotices", "Notice", "reached_text"]

_LIMITS: dict[LimitName, str] = {
    "hops": "gone through {of:g} messages in a row",
    "wakes": "started {of:g} turns",
    "fan_out": "reached a message that would wake more than {of:g} agents",
    "agents": "woken {of:g} different agents",
    "wall_clock": "run for {span}",
    "tokens": "used {used:,.0f} of its {of:,.0f} tokens",
    "usd": "used ${used:.4g} of its ${of:.4g}",
}
_AFTER: dict[LimitName, str] = {
    "fan_out": "The others receive the message but are not woken",
    "agents": "Further agents receive its messages but are not woken",
}
_REMEDIES: dict[Reason, str] = {
    Reason.STOPPED: "Write again once it is resumed.",
    Reason.BREAKER_OPEN: "Write again once an owner has released the breaker.",
    Reason.TAKEN_OVER: "The person can read your message and answer it.",
    Reason.DAILY_AGENT: "Write again tomorrow, or raise the agent's `daily`.",
    Reason.DAILY_THREAD: "Write again tomorrow, or raise `network.daily.thread`.",
    Reason.DAILY_NETWORK: "Write again tomorrow, or raise `network.daily.network`.",
}


class Notice(NamedTuple):
    """A notice to post once; `once` is its cid."""

    thread_id: str
    text: str
    details: dict[str, JsonValue]
    once: str
    to: tuple[str, ...] = ()


class BudgetNotices:
    """Posts a notice for each limit that refused something, once."""

    def __init__(self, threads: Threads, post: Callable[[Notice], None], limiter: LoopLimitConfig):
        self._threads, self._post, self._limiter = threads, post, limiter

    def limit(self, ledger: BudgetAccount, limit: LimitName, now: float) -> None:
        """Post that an interaction reached a limit, in its opening thread, to the person who opened
        it."""
        of = ledger.budget()[limit]
        used = ledger.used(now).get(limit, of)
        details: dict[str, JsonValue] = {
            "code": f"budget_{limit}",
            "interaction": ledger.interaction,
            "limit": limit,
            "used": used,
            "of": of,
        }
        to = (ledger.opened_by,) if ledger.opened_by_person else ()
        thread_id = self._threads.by_no(ledger.thread_no).id
        once = f"limit:{ledger.interaction}:{limit}"
        text = reached_text(limit, used, of, person=ledger.opened_by_person)
        self._post(Notice(thread_id, text, details, once, to))

    def day(self, reached: ReachedLimit, day: str, thread: Thread) -> None:
        """Post that a daily limit is reached."""
        whose, target, limit, used, of = reached
        once = f"daily:{day}:{whose}:{target}"
        text = f"{_subject(whose, target)} {_spent(limit, used, of)} for today ({day}, UTC)"
        if used < of:
            text += ", including questions in progress. The next one needs more than is left and is"
            text += " not asked until tomorrow"
        else:
            text += ". Nothing more starts until tomorrow"
        text += f", unless you raise {_setting(whose)}.{limit}."
        details: dict[str, JsonValue] = {
            "code": f"daily_{whose}",
            "day": day,
            "target": thread.id if whose == "thread" else target,
            "limit": limit,
            "used": used,
            "of": of,
        }
        self._post(Notice(thread.id, text, details, once))

    def looping(self, entry: Entry, judgement: PolicyResult) -> None:
        """Post that two agents reached the loop limit, in the interaction's opening thread, without
        mentioning anyone."""
        sender, config, ledger = entry.draft.sender_id, self._limiter, judgement.ledger
        interaction = entry.interaction or interaction_id(entry.seq)
        for agent in judgement.looping:
            text = (
                f"{sender} and {agent} have woken each other {config.wakes} times within "
                f"{_span(config.within)}, with no person in between (loop_limit). Their messages "
                "to each other are still delivered, but wake neither of them. Write to one of them "
                "to restart them, or raise network.wake.loop_limit.wakes."
            )
            details: dict[str, JsonValue] = {
                "code": Reason.LOOP_LIMIT.value,
                "interaction": interaction,
                "agents": [sender, agent],
            }
            thread_id = self._threads.by_no(ledger.thread_no).id
            once = f"loop_limit:m{entry.seq}:{agent}"
            self._post(Notice(thread_id, text, details, once))

    def unanswered(self, seq: int, thread_id: str, by: str, owed: Mapping[str, Reason]) -> None:
        """Post that a person's message gets no replies. `owed` maps the agents that would have
        replied to the reason they do not."""
        if not owed:
            return
        texts = [f"{who} was not woken: {_why(reason)}" for who, reason in owed.items()]
        details: dict[str, JsonValue] = {
            "code": next(iter(owed.values())).value,
            "message": message_id(seq),
            "agents": list(owed),
        }
        self._post(Notice(thread_id, " ".join(texts), details, f"unheard:m{seq}", (by,)))


def reached_text(limit: LimitName, used: float, of: float, *, person: bool) -> str:
    """The text of the notice about an interaction's limit."""
    done = _LIMITS[limit].format(used=used, of=of, span=_span(of))
    after = _AFTER.get(limit, "Its messages are still delivered, but wake no one")
    action = "Write again to continue" if person else "Write there to restart it"
    remedy = f"{action}, or raise network.budgets.{limit}"
    fully = "its limit"
    if limit in ("tokens", "usd") and used < of:
        fully = "including questions in progress, and the next one needs more than is left"
    return f"This has {done}, {fully} ({limit}). {after}. {remedy}."


def _why(reason: Reason) -> str:
    return f"{SENTENCES[reason]}. {_REMEDIES.get(reason, 'Write again to continue.')}"


def _span(seconds: float) -> str:
    return f"{seconds / 60:g} minutes" if seconds >= 60 else f"{seconds:g} seconds"


def _subject(whose: Whose, target: str) -> str:
    match whose:
        case "network":
            return "The network has"
        case "thread":
            return "This thread has"
    return f"{target} has"


def _spent(limit: LimitName, used: float, of: float) -> str:
    match limit:
        case "tokens":
            return f"used {used:,.0f} of {of:,.0f} tokens"
        case "usd":
            return f"used ${used:.4g} of ${of:.4g}"
    return f"started {used:g} of {of:g} turns"


def _setting(whose: Whose) -> str:
    return f"network.daily.{whose}" if whose != "agent" else "the agent's daily"
