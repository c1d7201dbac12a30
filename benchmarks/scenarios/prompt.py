"""What it takes to render a large conversation, all of it and with one thread changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import count, cycle
from statistics import median

from benchmarks.bench import Bench
from benchmarks.figures import Figure, at_most
from hubbub.agents.inbox import InboxThread, TurnPlan
from hubbub.agents.prompt.render import ConversationPrompt, ConversationTemplate
from hubbub.config.models import HistoryConfig
from hubbub.protocol import thread_ids
from hubbub.protocol.messages import Message

__all__ = ["CHARACTERS", "MESSAGES", "THREADS", "conversation", "run"]

THREADS, MESSAGES, CHARACTERS = 50, 10, 300
_ME = "agent"
_TEXT = ("a colleague's remark on the <draft> & what it leaves open; " * 6)[:CHARACTERS]
_NOW = datetime.now(UTC)


async def run(bench: Bench) -> Sequence[Figure]:
    bench.say("prompt")
    times = 50 if bench.quick else 300
    whole = _timed(_all_changed(), times)
    changed = _timed(_one_changed(), times)
    return [
        _figure("every thread is new", whole, 3.0),
        _figure("one thread has changed", changed, 0.2),
    ]


def _figure(name: str, rounds: list[float], bound: float) -> Figure:
    title = f"prompt of {THREADS} threads x {MESSAGES} x {CHARACTERS} characters"
    goal = at_most(bound, of="value")
    return Figure(title, name, "ms", ours=median(rounds), goal=goal, ours_rounds=rounds)


def _timed(threads: Iterator[Sequence[InboxThread]], times: int) -> list[float]:
    """Milliseconds of each rendering; the first one, which fills the cache, is left out."""
    render = _renderer()
    render(next(threads))
    found = []
    for _ in range(times):
        current = next(threads)
        started = time.perf_counter()
        render(current)
        found.append((time.perf_counter() - started) * 1e3)
    return found


def _renderer() -> Callable[[Sequence[InboxThread]], str]:
    template = ConversationTemplate.shipped()
    incoming = _message("p0", 10**9, 10**6)
    turn = TurnPlan("agent-m1", incoming.thread_id, (incoming,), ("direct",), reply_required=True)
    return lambda threads: ConversationPrompt.of(template, threads, turn, _ME, HistoryConfig()).text


def _all_changed() -> Iterator[Sequence[InboxThread]]:
    """Two conversations in turn that have no message in common."""
    yield from cycle([conversation(0), conversation(100_000)])


def _one_changed() -> Iterator[Sequence[InboxThread]]:
    """A conversation in which one thread goes on."""
    threads = conversation(0)
    for n in count(100_000):
        where = n % THREADS
        said = _message(f"p{where}", n, n)
        threads = list(threads)
        threads[where] = InboxThread(said.thread_id, (*threads[where].messages, said)[-MESSAGES:])
        yield threads


def conversation(base: int) -> Sequence[InboxThread]:
    """Threads with one person each; positions in the log begin after `base`."""
    found = []
    for n in range(THREADS):
        start = base + n * MESSAGES
        messages = [_message(f"p{n}", start + m + 1, m + 1) for m in range(MESSAGES)]
        found.append(InboxThread(messages[0].thread_id, tuple(messages)))
    return found


def _message(sender: str, seq: int, tseq: int) -> Message:
    return Message(
        id=f"m{seq}",
        seq=seq,
        thread_id=thread_ids.direct((sender, _ME)),
        tseq=tseq,
        sender_id=sender,
        sender_kind="agent",
        type="direct",
        recipients=(_ME,),
        content=_TEXT,
        interaction_id=f"i{seq}",
        hop=0,
        sent_at=_NOW,
    )
