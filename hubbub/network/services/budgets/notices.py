"""What the hub says when a limit stands in the way: one notice for each, with the remedy."""

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
    "fan_out": "come to a message that would wake more than {of:g} agents",
    "agents": "woken {of:g} different agents",
    "wall_clock": "gone on for {span}",
    "tokens": "used {used:,.0f} of its {of:,.0f} tokens",
    "usd": "used ${used:.4g} of its ${of:.4g}",
}
_AFTER: dict[LimitName, str] = {
    "fan_out": "The others have the message and are not woken",
    "agents": "Further agents get its messages and are not woken",
}
_REMEDIES: dict[Reason, str] = {
    Reason.STOPPED: "Write again once it is resumed.",
    Reason.BREAKER_OPEN: "Write again once an owner has released the breaker.",
    Reason.TAKEN_OVER: "That person has your message.",
    Reason.DAILY_AGENT: "Write again tomorrow, or raise the agent's `daily`.",
    Reason.DAILY_THREAD: "Write again tomorrow, or raise `network.daily.thread`.",
    Reason.DAILY_NETWORK: "Write again tomorrow, or raise `network.daily.network`.",
}


class Notice(NamedTuple):
    """A notice to be posted once; `once` is its cid."""

    thread_id: str
    text: str
    details: dict[str, JsonValue]
    once: str
    to: tuple[str, ...] = ()


class BudgetNotices:
    """Says what stands in the way, each thing once."""

    def __init__(self, threads: Threads, post: Callable[[Notice], None], limiter: LoopLimitConfig):
        self._threads, self._post, self._limiter = threads, post, limiter

    def limit(self, ledger: BudgetAccount, limit: LimitName, now: float) -> None:
        """An interaction has run into a limit: told where it was opened, to who opened it."""
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
        """A limit of the day is reached."""
        whose, target, limit, used, of = reached
        once = f"daily:{day}:{whose}:{target}"
        text = f"{_subject(whose, target)} {_spent(limit, used, of)} for today ({day}, UTC). "
        text += f"Until tomorrow nothing more is started, or raise {_setting(whose)}.{limit}."
        details: dict[str, JsonValue] = {
            "code": f"daily_{whose}",
            "day": day,
            "target": thread.id if whose == "thread" else target,
            "limit": limit,
            "used": used,
            "of": of,
        }
        self._post(Notice(thread.id, text, details, once))

    def breathless(self, entry: Entry, judgement: PolicyResult) -> None:
        """Two agents have woken each other as often as they may: told where the interaction was
        opened, and to nobody by name."""
        sender, config, ledger = entry.draft.sender_id, self._limiter, judgement.ledger
        interaction = entry.interaction or interaction_id(entry.seq)
        for agent in judgement.breathless:
            text = (
                f"{sender} and {agent} have woken each other {config.wakes} times within "
                f"{_span(config.within)}, and no person spoke between (loop_limit). What they "
                "say to each other still arrives, and wakes neither of them. A person who writes "
                "to one of them sets them going again, or raise network.wake.loop_limit.wakes."
            )
            details: dict[str, JsonValue] = {
                "code": Reason.LOOP_LIMIT.value,
                "interaction": interaction,
                "agents": [sender, agent],
            }
            thread_id = self._threads.by_no(ledger.thread_no).id
            once = f"loop_limit:m{entry.seq}:{agent}"
            self._post(Notice(thread_id, text, details, once))

    def unheard(self, seq: int, thread_id: str, by: str, owed: Mapping[str, Reason]) -> None:
        """A person waits for replies that will not come: told under its message's thread. `owed`
        are the agents that would have replied, and why they do not."""
        if not owed:
            return
        told = [f"{who} is not woken by this: {_why(reason)}" for who, reason in owed.items()]
        details: dict[str, JsonValue] = {
            "code": next(iter(owed.values())).value,
            "message": message_id(seq),
            "agents": list(owed),
        }
        self._post(Notice(thread_id, " ".join(told), details, f"unheard:m{seq}", (by,)))


def reached_text(limit: LimitName, used: float, of: float, *, person: bool) -> str:
    """The notice about a limit of an interaction."""
    done = _LIMITS[limit].format(used=used, of=of, span=_span(of))
    after = _AFTER.get(limit, "What is said in it still arrives, and wakes nobody")
    who = "Write again to go on" if person else "A person who writes sets it going again"
    remedy = f"{who}, or raise network.budgets.{limit}"
    fully = "as much as it may"
    if limit in ("tokens", "usd") and used < of:
        fully = "questions under way included, and the next one needs more than is left"
    return f"This has {done}, {fully} ({limit}). {after}. {remedy}."


def _why(reason: Reason) -> str:
    return f"{SENTENCES[reason]}. {_REMEDIES.get(reason, 'Write again to go on.')}"


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
