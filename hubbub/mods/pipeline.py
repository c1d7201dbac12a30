"""The pipeline: calls the hooks of the mods in the order of the network's YAML.

Each hook is guarded: an exception is a failure of its mod alone, and a hook that is repeatedly too
slow is disabled. `on_failure` in the mod's settings determines whether a message then passes or is
refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence, Set
from typing import TypeVar, TypeVarTuple

from pydantic_core import to_json

from hubbub.errors import OperationError, StoreUnavailable
from hubbub.mods.api import PASS, Mod, ModConfig, Pass, Reject, Replace, Verdict
from hubbub.mods.guard import Guard
from hubbub.mods.operation import Operation, Statement
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Attachment, Draft, Message, Quote
from hubbub.protocol.turns import Turn
from hubbub.user_code import contained

__all__ = ["Failed", "Pipeline", "Rejected", "apply_verdict"]


class Rejected(Exception):
    """A mod rejects a message, which is not a failure."""

    def __init__(self, error: OperationError):
        self.error = error


def apply_verdict(mod: Mod, draft: Draft, verdict: Verdict) -> Draft:
    """The draft after a verdict. Raises `Rejected`, and `TypeError` or `ValueError` for an invalid
    verdict."""
    match verdict:
        case Pass():
            return draft
        case Replace(replacement):
            _check_replacement(draft, replacement)
            return replacement
        case Reject(reason):
            text = f"{mod.name}: {reason}"
            raise Rejected(OperationError(ErrorCode.REJECTED, text, details={"mod": mod.name}))
        case _:
            # No `assert_never`: a mod that was not type-checked can return anything.
            raise TypeError(f"a verdict is Pass, Replace or Reject, not {verdict!r:.100}")


_REPLACEABLE = (
    "content",
    "text_representation",
    "quote",
    "attachments",
    "mentions",
    "unresolved",
    "notes",
)
"""The fields of a draft that a mod can change. It can also mark a draft as from outside."""


def _check_replacement(old: Draft, new: Draft) -> None:
    if new is old:
        return
    if not isinstance(new, Draft):
        raise TypeError(f"Replace needs a Draft, not {new!r:.100}")
    changes = {name: getattr(new, name) for name in _REPLACEABLE}
    marked = old.untrusted or new.untrusted is True  # the mark cannot be removed
    if old.replace(**changes, untrusted=marked) != new:
        raise ValueError("on_message replaced a message's sender, thread or recipients")
    _check_types(new)
    to_json(list(changes.values()))  # raises ValueError for a value that cannot be serialized


def _check_types(new: Draft) -> None:
    """Raises `TypeError` for values of wrong types, since mods may not be type-checked."""
    one = {"text_representation": (new.text_representation, str), "quote": (new.quote, Quote)}
    for name, (value, kind) in one.items():
        if value is not None and not isinstance(value, kind):
            raise TypeError(f"{name} must be a {kind.__name__} or None, not {value!r:.100}")
    many = {"mentions": str, "unresolved": str, "notes": str, "attachments": Attachment}
    for name, kind in many.items():
        values = getattr(new, name)
        if not isinstance(values, tuple) or not all(isinstance(each, kind) for each in values):
            raise TypeError(f"{name} must be a tuple of {kind.__name__}, not {values!r:.100}")


T = TypeVar("T")
Ts = TypeVarTuple("Ts")

THREAD_FACTOR = 10
"""Factor for the time limit of a hook in a thread, which blocks nothing but waits for the GIL."""

Failed = Callable[[Mod, str, BaseException], None]
"""Called for each failure with the mod, the name of the hook and the exception."""


class Pipeline:
    """The mods of a network, in the order of its YAML."""

    def __init__(self, mods: Sequence[Mod] = (), failed: Failed | None = None):
        self.mods = tuple(mods)
        self._failed = failed or (lambda mod, hook, error: None)
        self.guard = Guard(self._failed)
        self._stopped = False
        self._running: list[Mod] = []
        """Mods whose `on_message` is running, which is not called for messages sent from it."""
        # A mod that does not override a hook costs nothing.
        self._judges = self._with("on_message")
        self._slow = frozenset(self._with("takes_long"))
        self._short = min((mod.short for mod in self._slow), default=0)
        self._thread_slot = asyncio.Semaphore(1)
        """One hook runs in a thread at a time. More would only compete with the event loop."""
        self._storing = self._with("on_stored")
        self._joining, self._leaving = self._with("on_join"), self._with("on_leave")
        self._turns, self._timers = self._with("on_turn"), self._with("on_timer")
        self._referring, self.muting = self._with("on_references"), self._with("on_wake")
        self._showing = self._with("shown")

    def _with(self, hook: str) -> tuple[Mod, ...]:
        return tuple(mod for mod in self.mods if getattr(type(mod), hook) is not getattr(Mod, hook))

    def start(self) -> None:
        """Start logging where a mod blocks the hub's event loop."""
        if self.mods:
            self.guard.start()

    def stop(self) -> None:
        """Stop calling hooks; messages then pass unchanged. `Mod.stop` is still guarded."""
        self._stopped = True

    @property
    def judges(self) -> bool:
        """Whether a mod can change or reject messages."""
        return bool(self._judges)

    @property
    def keeps(self) -> bool:
        """Whether a mod writes rows for messages."""
        return bool(self._storing)

    @property
    def refers(self) -> bool:
        """Whether a mod looks up references of messages."""
        return bool(self._referring)

    @property
    def shows(self) -> bool:
        """Whether a mod changes how messages are shown."""
        return bool(self._showing)

    # Messages ---------------------------------------------------------------------------------

    def run(self, draft: Draft) -> Draft:
        """The draft after all mods. Raises `OperationError` if one rejects it."""
        if self._stopped:
            return draft
        for mod in self._judges:
            if (not self._running or mod not in self._running) and self._watches(mod, draft):
                draft = self._judged(mod, draft)
        return draft

    def _watches(self, mod: Mod, draft: Draft) -> bool:
        try:
            return mod.watches(draft)
        except BaseException as error:  # noqa: BLE001  a failure of this mod alone
            self._failed(mod, "watches", error)
            return True

    def _judged(self, mod: Mod, draft: Draft) -> Draft:
        if self.guard.off and (mod, "on_message") in self.guard.off:
            return self._after_failure(mod, draft)
        self._running.append(mod)
        try:
            verdict = self.guard.run(
                mod.config.time_limit, mod, "on_message", mod.on_message, draft
            )
            return draft if verdict is PASS else apply_verdict(mod, draft, verdict)
        except Rejected as rejected:
            raise rejected.error from None
        except BaseException as error:  # noqa: BLE001  a failure of this mod alone
            self._failed(mod, "on_message", error)
            return self._after_failure(mod, draft)
        finally:
            self._running.pop()

    def takes_long(self, draft: Draft) -> bool:
        """Whether `run_in_thread` must be used for the draft, because a hook may take long."""
        if self._stopped or not self._slow:
            return False
        text = draft.content
        plain = draft.quote is None and draft.attachments == ()
        plain = plain and draft.text_representation is None
        if plain and isinstance(text, str) and len(text) <= self._short:
            return False  # as nearly all messages
        return any(self._takes_long(mod, draft) for mod in self._slow)

    def _takes_long(self, mod: Mod, draft: Draft) -> bool:
        return bool(self._call(mod, "takes_long", mod.takes_long, draft))

    async def run_in_thread(self, draft: Draft) -> Draft:
        """Like `run`, but hooks that may take long run in a thread."""
        for mod in () if self._stopped else self._judges:
            if not self._watches(mod, draft):
                continue
            if mod in self._slow and self._takes_long(mod, draft):
                draft = await self._judged_in_thread(mod, draft)
            else:
                draft = self._judged(mod, draft)
        return draft

    async def _judged_in_thread(self, mod: Mod, draft: Draft) -> Draft:
        if (mod, "on_message") in self.guard.off:
            return self._after_failure(mod, draft)
        limit = THREAD_FACTOR * mod.config.time_limit
        late = asyncio.timeout(limit)
        try:
            async with self._thread_slot, late:
                with contained():
                    verdict = await asyncio.to_thread(mod.on_message, draft)
            return apply_verdict(mod, draft, verdict)
        except Rejected as rejected:
            raise rejected.error from None
        except Exception as error:  # noqa: BLE001  a failure of this mod alone
            if late.expired():
                self.guard.count(mod, "on_message", limit, limit)
            else:
                self._failed(mod, "on_message", error)
            return self._after_failure(mod, draft)

    def _after_failure(self, mod: Mod, draft: Draft) -> Draft:
        """The draft after a failure of the mod, if it passes. Raises `OperationError`."""
        if mod.config.on_failure == "pass" or draft.sender_kind == "system":
            return draft  # messages of the hub itself are not lost to a broken mod
        raise OperationError(
            ErrorCode.REJECTED,
            f"{mod.name}: the mod failed, and messages are refused until it works again; "
            "the operator was notified",
            details={"mod": mod.name},
        )

    async def referred(self, draft: Draft) -> Draft:
        """The draft after the mods looked up its references. Raises `OperationError` if one rejects
        it, and `StoreUnavailable`."""
        for mod in () if self._stopped else self._referring:
            if (mod, "on_references") in self.guard.off:
                draft = self._after_failure(mod, draft)
                continue
            try:
                work = mod.on_references(draft)
                with contained():
                    verdict = await self.guard.steps(mod, "on_references", work)
                draft = apply_verdict(mod, draft, verdict)
            except Rejected as rejected:
                raise rejected.error from None
            except (StoreUnavailable, asyncio.CancelledError):
                raise
            except Exception as error:  # noqa: BLE001  a failure of this mod alone
                self._failed(mod, "on_references", error)
                draft = self._after_failure(mod, draft)
        return draft

    def not_woken(self, draft: Draft, agents: Sequence[str]) -> Set[str]:
        """The agents that mods keep the draft from waking."""
        excluded: set[str] = set()
        for mod in self.muting:
            excluded |= self._call(mod, "on_wake", _not_woken, mod, draft, agents) or frozenset()
        return excluded

    async def shown(self, messages: Sequence[Message]) -> Sequence[Message]:
        """The messages as the mods show them. Raises `StoreUnavailable`."""
        for mod in () if self._stopped or not messages else self._showing:
            try:
                with contained():
                    messages = await self.guard.steps(mod, "shown", _shown(mod, messages))
            except (StoreUnavailable, asyncio.CancelledError):
                raise
            except Exception as error:  # noqa: BLE001  a failure of this mod alone
                self._failed(mod, "shown", error)
        return messages

    def storing(self, draft: Draft) -> Sequence[Mod]:
        """The mods that may write rows for a message that enters the log."""
        if self._stopped:
            return ()
        off = self.guard.off
        mods = [mod for mod in self._storing if self._watches(mod, draft)]
        return [mod for mod in mods if (mod, "on_stored") not in off] if off else mods

    def stored(
        self, message: Message, mods: Sequence[Mod]
    ) -> Sequence[tuple[Mod, tuple[Statement, ...]]]:
        """The rows that these mods write for a message that enters the log."""
        statements: list[tuple[Mod, tuple[Statement, ...]]] = []
        run = self.guard.run
        for mod in mods:
            limit = mod.config.time_limit
            try:
                rows = run(limit, mod, "on_stored", mod.on_stored, message)
                if rows != ():  # most mods write nothing for most messages
                    statements.append((mod, run(limit, mod, "on_stored", _statements, rows)))
            except BaseException as error:  # noqa: BLE001  a failure of this mod alone
                self._failed(mod, "on_stored", error)
        return statements

    # Other hooks ------------------------------------------------------------------------------

    def joined(self, participant: str) -> None:
        for mod in self._joining:
            self._call(mod, "on_join", mod.on_join, participant)

    def left(self, participant: str) -> None:
        for mod in self._leaving:
            self._call(mod, "on_leave", mod.on_leave, participant)

    def turn_ended(self, turn: Turn) -> None:
        for mod in self._turns:
            self._call(mod, "on_turn", mod.on_turn, turn)

    @property
    def watches_turns(self) -> bool:
        return bool(self._turns)

    def timer(self, mod: Mod, key: str) -> None:
        """Call a mod at a time that it requested."""
        if mod in self._timers:
            self._call(mod, "on_timer", mod.on_timer, key)

    def reconfigure(self, mod: Mod, config: ModConfig) -> Sequence[Operation]:
        """Apply new settings to a mod. Returns its operations with them. Raises what the mod
        raises."""
        self.guard.forgive(mod)
        return self.guard.run(mod.config.time_limit, mod, "reconfigure", _reconfigured, mod, config)

    def _call(self, mod: Mod, name: str, hook: Callable[[*Ts], T], *args: *Ts) -> T | None:
        """The result of the hook. None if it fails or is disabled."""
        if self._stopped or (self.guard.off and (mod, name) in self.guard.off):
            return None
        try:
            return self.guard.run(mod.config.time_limit, mod, name, hook, *args)
        except BaseException as error:  # noqa: BLE001  a failure of this mod alone
            self._failed(mod, name, error)
            return None


def _reconfigured(mod: Mod, config: ModConfig) -> Sequence[Operation]:
    mod.reconfigure(config)
    mod.config = config  # set even if the mod did not, for limits and permissions
    return mod.operations()


async def _shown(mod: Mod, messages: Sequence[Message]) -> Sequence[Message]:
    """Raises `ValueError` if the hook returns different messages."""
    shown = tuple(await mod.shown(messages))
    if [message.seq for message in shown] != [message.seq for message in messages]:
        raise ValueError("shown must return the messages that it was given, in the same order")
    return shown


def _not_woken(mod: Mod, draft: Draft, agents: Sequence[str]) -> frozenset[str]:
    return frozenset(mod.on_wake(draft, agents))


def _statements(result: Sequence[Statement]) -> tuple[Statement, ...]:
    """Raises `TypeError` if `on_stored` returns anything else."""
    statements = tuple(result)
    for statement in statements:
        if not isinstance(statement, Statement):
            raise TypeError(f"on_stored must return Statements, not {statement!r:.100}")
    return statements
