"""The conversation in a turn's prompt: the messages that it shows, and their template."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, StrictUndefined, Template
from jinja2.sandbox import SandboxedEnvironment

from hubbub.agents.inbox import InboxThread, TurnPlan
from hubbub.agents.prompt.escape import Escaped, escaped
from hubbub.agents.prompt.files import (
    TEMPLATE_ERRORS,
    parse_alone,
    parse_error,
    prompt_text,
    render_error,
)
from hubbub.config.models import HistoryConfig
from hubbub.ids import message_id
from hubbub.protocol import thread_ids
from hubbub.protocol.messages import Attachment, Message, Quote

__all__ = [
    "NOW",
    "PROGRAM_CLOSING",
    "SHIPPED",
    "ConversationPrompt",
    "ConversationTemplate",
    "ThreadView",
    "attachments",
    "attributes",
    "element",
    "first_that_fits",
    "select_history",
    "shown_id",
]

shown_id = lru_cache(4096)(thread_ids.relative)
_escaped_id = lru_cache(4096)(escaped)
SHIPPED = Path(__file__).with_name("conversation.j2")
"""The built-in template of the conversation."""
_THREADS = Escaped("\0threads\0")
"""Stands for the threads while a template runs, which would copy their text several times. No
escaped text contains it."""


class ThreadView(NamedTuple):
    """A thread as a prompt shows it: the value type of the template's `message_threads`."""

    id: str
    """Relative to the agent, for example `direct_alice`."""
    messages: tuple[Message, ...]
    """Oldest first."""


def select_history(
    threads: Iterable[InboxThread], turn: TurnPlan, me: str, rules: HistoryConfig
) -> dict[str, ThreadView]:
    """The history that the prompt of `turn` shows, by relative thread id, most recently active
    first. The thread in which the turn answers counts first against `rules.threads`.

    It excludes messages after the newest incoming one and the incoming messages themselves, except
    those that the turn does not show as incoming.
    """
    shown = turn.shown
    first, until = shown[0].seq, shown[-1].seq
    incoming = frozenset(m.seq for m in shown)
    is_unfiltered = rules.types is None and not rules.hide_senders
    views: dict[str, ThreadView] = {}
    others = rules.threads - 1
    for thread in threads:
        is_own = thread.id == turn.reply_thread
        if not is_own and others == 0:
            continue
        messages = thread.messages
        if not is_unfiltered or messages[-1].seq >= first:
            messages = tuple(
                m
                for m in messages
                if m.seq <= until and m.seq not in incoming and _is_shown(m, rules)
            )
        if messages:
            id = shown_id(thread.id, me)
            views[id] = ThreadView(id, messages[-rules.messages :])
            others -= not is_own
    return views


def _is_shown(message: Message, rules: HistoryConfig) -> bool:
    has_type = rules.types is None or message.type in rules.types
    return has_type and message.sender_id not in rules.hide_senders


class Closing(NamedTuple):
    """The last paragraph of the built-in template."""

    step: str
    """How to work."""
    idle: str
    """What to do if nothing needs doing."""


LOOP_CLOSING = Closing(
    "In every step, call a tool, or call `finish` when you are done.",
    "If nothing needs doing, call `finish` at once.",
)
PROGRAM_CLOSING = Closing("", "If nothing needs doing, end without a text.")
"""For a program with its own loop, which has no `finish`."""


class ConversationTemplate:
    """A compiled template with a cache of rendered threads, one per agent: a thread that has not
    changed since the last prompt is not rendered again.
    """

    def __init__(self, template: Template, path: Path):
        self._template = template
        self._path = path
        self._elements: dict[str, tuple[tuple[Message, ...], str]] = {}

    @classmethod
    def shipped(cls) -> ConversationTemplate:
        """The built-in template."""
        return cls(_shipped(), SHIPPED)

    @classmethod
    def load(cls, path: Path) -> ConversationTemplate:
        """A user's template, which runs in a sandbox.

        Raises `ConfigError` with file and line when it cannot be read, compiled, or rendered with a
        small conversation.
        """
        parse_alone(SandboxedEnvironment(), prompt_text(path, "the template"), path, "the template")
        template = cls(_compile(SandboxedEnvironment, path), path)
        template.render(
            {"direct_ann": ThreadView("direct_ann", (_SAMPLE,))}, "direct_ann", [_SAMPLE]
        )
        return cls(template._template, path)

    def without_cache(self) -> ConversationTemplate:
        """The same template with a separate cache, for shortened conversations."""
        return ConversationTemplate(self._template, self._path)

    def render(
        self,
        message_threads: Mapping[str, ThreadView],
        incoming_thread_id: str,
        incoming_messages: Sequence[Message],
        omitted: int = 0,
        now: str = "",
        rule: Closing = LOOP_CLOSING,
    ) -> str:
        """The user message of a turn. `now` is the line on what to do now, `rule` the closing
        paragraph. Raises `ConfigError` if a user's template fails.
        """
        try:
            text = self._template.render(
                message_threads=message_threads,
                thread_elements=_THREADS,
                incoming_thread_id=incoming_thread_id,
                incoming_message=incoming_messages[-1],
                incoming_messages=incoming_messages,
                omitted=omitted,
                now=now,
                rule=rule,
            )
        except TEMPLATE_ERRORS as exc:
            raise render_error(exc, self._path, "the template") from exc
        parts = text.split(_THREADS.text)
        if len(parts) == 1:
            return text
        return "".join(self._thread_elements(message_threads)).join(parts)

    def _thread_elements(self, threads: Mapping[str, ThreadView]) -> Iterator[str]:
        """The element of each thread, rendered only if its messages changed."""
        earlier, self._elements = self._elements, {}
        for id, thread in threads.items():
            entry = earlier.get(id)
            if entry is None or entry[0] != thread.messages:
                entry = (thread.messages, _thread_element(thread))
            self._elements[id] = entry
            yield entry[1]


@cache
def _shipped() -> Template:
    """Compiled once for all agents of a process."""
    return _compile(Environment, SHIPPED)


def _compile(environment: type[Environment], path: Path) -> Template:
    env = environment(
        autoescape=True,  # explicit, because the suffix .j2 does not enable it
        finalize=_finalize,
        undefined=StrictUndefined,
        keep_trailing_newline=False,
    )
    env.filters["element"] = element
    env.filters["attributes"] = attributes
    env.filters["attachments"] = attachments
    source = prompt_text(path, "the template")
    try:
        code = env.compile(source, filename=str(path))
    except TEMPLATE_ERRORS as exc:
        raise parse_error(exc, path, "the template") from exc
    return Template.from_code(env, code, env.globals)


def _finalize(value: object) -> object:
    """Escape the value of a template's expression."""
    if type(value) is str:
        return escaped(value)
    if hasattr(value, "__html__") or isinstance(value, StrictUndefined):
        return value
    return escaped(str(value))


def _thread_element(thread: ThreadView) -> str:
    messages = "".join([f"\n      {element(m, 'message').text}" for m in thread.messages])
    return f'\n    <thread id="{_escaped_id(thread.id).text}">{messages}\n    </thread>'


def element(message: Message, name: str, omitted: int = 0) -> Escaped:
    """A message as an element. `omitted`: the number of messages before it that are not shown."""
    attrs, content = attributes(message).text, escaped(message.text).text
    not_shown = f' earlier_not_shown="{omitted}"' if omitted else ""
    quote = message.quote
    quoted = _quoted(quote) if quote is not None else ""
    files = attachments(message).text if message.attachments else ""
    return Escaped(
        f"<{name} {attrs}{not_shown}>{quoted} <content>{content}</content>{files} </{name}>"
    )


def _quoted(quote: Quote) -> str:
    return f' <quote id="{escaped(quote.message_id)}">{escaped(quote.text)}</quote>'


def attributes(message: Message) -> Escaped:
    """The XML attributes of a message."""
    common = (
        f'sender="{_escaped_id(message.sender_id).text}" kind="{message.sender_kind}"'
        f' id="{message_id(message.seq)}" time="{_time(message.sent_at)}"'
    )
    rare = message.sent_by or message.request or message.amended
    if message.untrusted or rare is not None:
        return Escaped(
            common + "".join(f' {key}="{value}"' for key, value in _rare_attributes(message))
        )
    return Escaped(common)


def _rare_attributes(message: Message) -> Iterator[tuple[str, Escaped | str]]:
    """Attributes that few messages have."""
    if message.sent_by is not None:
        yield "sent_by", _escaped_id(message.sent_by)
    if message.untrusted:
        yield "untrusted", "true"
    if message.amended is not None:
        yield message.amended, "true"
    request = message.request
    if request is None:
        return
    yield "request", escaped(request.id or message_id(message.seq))
    yield "request_kind", request.kind
    if request.outcome:
        yield "outcome", escaped(request.outcome)
    if request.deadline is not None:
        yield "deadline", _time(request.deadline)


def attachments(message: Message) -> Escaped:
    """The attachments of a message: one element each, with the beginning of a file's text. Files of
    the network have the id that `read_file` takes.
    """
    return Escaped("".join(f" {_attachment(each)}" for each in message.attachments))


def _attachment(attachment: Attachment) -> str:
    scheme, _, id = attachment.uri.partition(":")
    where = ("id", id) if scheme == "file" else ("uri", attachment.uri)
    pairs = [where, ("name", attachment.name), ("type", attachment.media_type)]
    if attachment.size is not None:
        pairs.append(("size", str(attachment.size)))
    if attachment.gone:
        pairs.append(("gone", "true"))
    attrs = " ".join(f'{key}="{escaped(value)}"' for key, value in pairs)
    return f"<attachment {attrs}>{escaped(attachment.excerpt or '')}</attachment>"


def _time(at: datetime) -> str:
    return f"{(at if at.tzinfo is UTC else at.astimezone(UTC)).isoformat()[:19]}Z"


_SAMPLE = Message(
    id="m1",
    seq=1,
    thread_id="dm.agent.ann",
    tseq=1,
    sender_id="ann",
    sender_kind="human",
    type="direct",
    recipients=("agent",),
    content="hello",
    interaction_id="i1",
    hop=0,
    sent_at=datetime(2025, 1, 1, tzinfo=UTC),
)


# The user message of a turn, with fewer messages of the history if not all fit. Pure. Messages are
# removed in this order, each time the oldest of a thread: (1) all but the last three of the other
# threads, starting with the least recently active thread; (2) the rest of those threads, in the
# same order; (3) all but the last three of the incoming thread; (4) those three, only when nothing
# else remains. The incoming messages always stay.


_RECENT = 3
NOW = "Answer {} now."
"""The last line of the prompt of a turn whose reply a participant waits for."""


class ConversationPrompt:
    """A turn's user message, which can be shortened."""

    def __init__(
        self,
        template: ConversationTemplate,
        threads: Mapping[str, ThreadView],
        incoming_thread_id: str,
        incoming: Sequence[Message],
        omitted: int = 0,
        now: str = "",
        rule: Closing = LOOP_CLOSING,
    ):
        """`threads` by relative id, most recently active first."""
        self._template, self._shorter = template, template.without_cache()
        self._threads, self._incoming_thread = threads, incoming_thread_id
        self._incoming, self._omitted, self._now = incoming, omitted, now
        self._rule = rule
        self._order: list[str] | None = None
        self._texts: dict[int, str] = {}

    @classmethod
    def of(
        cls,
        template: ConversationTemplate,
        threads: Iterable[InboxThread],
        turn: TurnPlan,
        me: str,
        rules: HistoryConfig,
        rule: Closing = LOOP_CLOSING,
    ) -> ConversationPrompt:
        """The conversation of `turn` for the agent `me`, with `rule` at its end."""
        views = select_history(threads, turn, me, rules)
        incoming = thread_ids.relative(turn.thread_id, me)
        asked = turn.original_request or (turn.shown[-1] if turn.reply_required else None)
        now = NOW.format(asked.sender_id) if asked is not None else ""
        return cls(template, views, incoming, turn.shown, turn.omitted, now, rule)

    @property
    def text(self) -> str:
        """The full text."""
        return self.without(0)

    @property
    def in_thread(self) -> Sequence[Message]:
        """The messages shown of the thread that woke the agent, before any omission."""
        view = self._threads.get(self._incoming_thread)
        return [*(view.messages if view is not None else ()), *self._incoming]

    @property
    def messages(self) -> int:
        """The total number of history messages that can be omitted."""
        return sum(len(view.messages) for view in self._threads.values())

    @property
    def spare(self) -> int:
        """How many of them are omitted before any other part is shortened."""
        recent = self._threads.get(self._incoming_thread)
        return self.messages - (min(_RECENT, len(recent.messages)) if recent else 0)

    def without(self, n: int) -> str:
        """The text without the first `n` messages that can be omitted."""
        if n not in self._texts:
            template = self._shorter if n else self._template
            shown = self._remaining(n) if n else self._threads
            thread, incoming = self._incoming_thread, self._incoming
            rest = (self._omitted, self._now, self._rule)
            self._texts[n] = template.render(shown, thread, incoming, *rest)
        return self._texts[n]

    def _remaining(self, n: int) -> dict[str, ThreadView]:
        if n >= self.messages:
            return {}
        removed = Counter(self._removal_order()[:n])
        views = (ThreadView(id, view.messages[removed[id] :]) for id, view in self._threads.items())
        return {view.id: view for view in views if view.messages}

    def _removal_order(self) -> list[str]:
        """The threads of the messages to omit, in order."""
        if self._order is None:
            self._order = list(self._threads_to_shorten())
        return self._order

    def _threads_to_shorten(self) -> Iterator[str]:
        others = {
            id: len(view.messages)
            for id, view in reversed(list(self._threads.items()))
            if id != self._incoming_thread
        }
        for id, count in others.items():
            yield from [id] * (count - _RECENT)
        for id, count in others.items():
            yield from [id] * min(count, _RECENT)
        if self._incoming_thread in self._threads:
            view = self._threads[self._incoming_thread]
            yield from [self._incoming_thread] * len(view.messages)


def first_that_fits(cost: Callable[[int], int], room: int, low: int, high: int) -> int:
    """The smallest n from `low` to `high` with `cost(n) <= room`; `high` if there is none.

    `cost` must not increase; steps of about equal size make the search fast.
    """
    top, bottom = cost(low), cost(high)
    if top <= room or low == high:
        return low
    if bottom > room:
        return high
    # cost(low) does not fit, cost(high) does: interpolate.
    while high - low > 1:
        part = (top - room) / max(top - bottom, 1)
        guess = min(max(low + round(part * (high - low)), low + 1), high - 1)
        size = cost(guess)
        if size <= room:
            high, bottom = guess, size
        else:
            low, top = guess, size
    return high
