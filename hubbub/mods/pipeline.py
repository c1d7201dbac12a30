"""The pipeline: what happens passes the mods in the order of the network's YAML.

Each hook runs guarded: what it raises is its mod's failure and nobody else's, and a hook that is
too slow again and again is switched off. `on_failure` in the mod's settings says whether a message
passes then or is refused.
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

__all__ = ["Failed", "Pipeline", "Rejected", "after"]


class Rejected(Exception):
    """A mod rejects a message, as it may: no failure."""

    def __init__(self, error: OperationError):
        self.error = error


def after(mod: Mod, draft: Draft, verdict: Verdict) -> Draft:
    """Raises `Rejected`, and `TypeError` or `ValueError` for what is no verdict."""
    match verdict:
        case Pass():
            return draft
        case Replace(replacement):
            _check_replacement(draft, replacement)
            return replacement
        case Reject(reason):
            told = f"{mod.name}: {reason}"
            raise Rejected(OperationError(ErrorCode.REJECTED, told, details={"mod": mod.name}))
        case _:
            # No `assert_never`: a mod that was not type-checked may answer anything.
            raise TypeError(f"a verdict is Pass, Replace or Reject, not {verdict!r:.100}")


_FREE = (
    "content",
    "text_representation",
    "quote",
    "attachments",
    "mentions",
    "unresolved",
    "notes",
)
"""What a mod may change of a draft; it may also mark one as from outside the network."""


def _check_replacement(old: Draft, new: Draft) -> None:
    if new is old:
        return
    if not isinstance(new, Draft):
        raise TypeError(f"Replace needs a Draft, not {new!r:.100}")
    kept = {name: getattr(new, name) for name in _FREE}
    marked = old.outside or new.outside is True  # what is from outside stays so
    if old.replace(**kept, outside=marked) != new:
        raise ValueError("on_message replaced a message's sender, thread or recipients")
    _check_types(new)
    to_json(list(kept.values()))  # raises ValueError for what cannot be written down


def _check_types(new: Draft) -> None:
    """Raises `TypeError` for what the log cannot store: the mod may not be type-checked."""
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

BESIDE = 10
"""Times its limit that a hook has in a thread, where it delays nothing and waits for its turns."""

Failed = Callable[[Mod, str, BaseException], None]
"""Gets each failure: the mod, the hook's name, what it raised."""


class Pipeline:
    """The mods of a network, in the order of its YAML."""

    def __init__(self, mods: Sequence[Mod] = (), failed: Failed | None = None):
        self.mods = tuple(mods)
        self._failed = failed or (lambda mod, hook, error: None)
        self.guard = Guard(self._failed)
        self._stopped = False
        self._asked: list[Mod] = []
        """Mods whose `on_message` runs now: what one says from within it, it is not asked about."""
        # A mod that keeps the hook of the base class has nothing to say, and costs nothing.
        self._judges = self._with("on_message")
        self._slow = frozenset(self._with("takes_long"))
        self._short = min((mod.short for mod in self._slow), default=0)
        self._beside = asyncio.Semaphore(1)
        """Of hooks in threads: more than one would only take turns with the loop more often."""
        self._storing = self._with("on_stored")
        self._joining, self._leaving = self._with("on_join"), self._with("on_leave")
        self._turns, self._timers = self._with("on_turn"), self._with("on_timer")
        self._referring, self.muting = self._with("on_references"), self._with("on_wake")
        self._showing = self._with("shown")

    def _with(self, hook: str) -> tuple[Mod, ...]:
        return tuple(mod for mod in self.mods if getattr(type(mod), hook) is not getattr(Mod, hook))

    def start(self) -> None:
        """From now on the log says where the hub's loop hangs in a mod."""
        if self.mods:
            self.guard.start()

    def stop(self) -> None:
        """No hook is called any more; messages pass as they are. What mods do in their end is still
        guarded."""
        self._stopped = True

    @property
    def judges(self) -> bool:
        """Whether there is a mod that may change or reject messages."""
        return bool(self._judges)

    @property
    def keeps(self) -> bool:
        """Whether there is a mod that writes something about messages."""
        return bool(self._storing)

    @property
    def refers(self) -> bool:
        """Whether there is a mod that looks up what messages refer to."""
        return bool(self._referring)

    @property
    def shows(self) -> bool:
        """Whether there is a mod that shows messages otherwise than they stand in the log."""
        return bool(self._showing)

    # Messages ---------------------------------------------------------------------------------

    def run(self, draft: Draft) -> Draft:
        """The draft as the mods leave it. Raises `OperationError` when one of them rejects it."""
        if self._stopped:
            return draft
        for mod in self._judges:
            if (not self._asked or mod not in self._asked) and self._watches(mod, draft):
                draft = self._judged(mod, draft)
        return draft

    def _watches(self, mod: Mod, draft: Draft) -> bool:
        try:
            return mod.watches(draft)
        except BaseException as error:  # noqa: BLE001  one mod's failure is its own
            self._failed(mod, "watches", error)
            return True

    def _judged(self, mod: Mod, draft: Draft) -> Draft:
        if self.guard.off and (mod, "on_message") in self.guard.off:
            return self._without(mod, draft)
        self._asked.append(mod)
        try:
            verdict = self.guard.run(
                mod.config.time_limit, mod, "on_message", mod.on_message, draft
            )
            return draft if verdict is PASS else after(mod, draft, verdict)
        except Rejected as rejected:
            raise rejected.error from None
        except BaseException as error:  # noqa: BLE001  one mod's failure is its own
            self._failed(mod, "on_message", error)
            return self._without(mod, draft)
        finally:
            self._asked.pop()

    def takes_long(self, draft: Draft) -> bool:
        """Whether the draft is one for `run_beside`, since judging it may take long."""
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

    async def run_beside(self, draft: Draft) -> Draft:
        """As `run`; mods that may take long are asked in a thread."""
        for mod in () if self._stopped else self._judges:
            if not self._watches(mod, draft):
                continue
            if mod in self._slow and self._takes_long(mod, draft):
                draft = await self._judged_beside(mod, draft)
            else:
                draft = self._judged(mod, draft)
        return draft

    async def _judged_beside(self, mod: Mod, draft: Draft) -> Draft:
        if (mod, "on_message") in self.guard.off:
            return self._without(mod, draft)
        limit = BESIDE * mod.config.time_limit
        late = asyncio.timeout(limit)
        try:
            async with self._beside, late:
                verdict = await asyncio.to_thread(mod.on_message, draft)
            return after(mod, draft, verdict)
        except Rejected as rejected:
            raise rejected.error from None
        except Exception as error:  # noqa: BLE001  one mod's failure is its own
            if late.expired():
                self.guard.count(mod, "on_message", limit, limit)
            else:
                self._failed(mod, "on_message", error)
            return self._without(mod, draft)

    def _without(self, mod: Mod, draft: Draft) -> Draft:
        """What becomes of a draft that a mod could not judge. Raises `OperationError`."""
        if mod.config.on_failure == "pass" or draft.sender_kind == "system":
            return draft  # what the hub itself has to say is not lost by a broken mod
        raise OperationError(
            ErrorCode.REJECTED,
            f"{mod.name}: the mod has failed, and lets no message through while it does; "
            "the operator is told",
            details={"mod": mod.name},
        )

    async def referred(self, draft: Draft) -> Draft:
        """The draft as the mods leave it that have looked up what it refers to. Raises
        `OperationError` when one of them rejects it, and `StoreUnavailable`."""
        for mod in () if self._stopped else self._referring:
            if (mod, "on_references") in self.guard.off:
                draft = self._without(mod, draft)
                continue
            try:
                work = mod.on_references(draft)
                with contained():
                    verdict = await self.guard.steps(mod, "on_references", work)
                draft = after(mod, draft, verdict)
            except Rejected as rejected:
                raise rejected.error from None
            except (StoreUnavailable, asyncio.CancelledError):
                raise
            except Exception as error:  # noqa: BLE001  one mod's failure is its own
                self._failed(mod, "on_references", error)
                draft = self._without(mod, draft)
        return draft

    def asleep(self, draft: Draft, agents: Sequence[str]) -> Set[str]:
        """Those whom the draft would wake and shall not, as the mods say."""
        found: set[str] = set()
        for mod in self.muting:
            found |= self._call(mod, "on_wake", _asleep, mod, draft, agents) or frozenset()
        return found

    async def shown(self, messages: Sequence[Message]) -> Sequence[Message]:
        """The messages as the mods show them. Raises `StoreUnavailable`."""
        for mod in () if self._stopped or not messages else self._showing:
            try:
                with contained():
                    messages = await self.guard.steps(mod, "shown", _shown(mod, messages))
            except (StoreUnavailable, asyncio.CancelledError):
                raise
            except Exception as error:  # noqa: BLE001  one mod's failure is its own
                self._failed(mod, "shown", error)
        return messages

    def storing(self, draft: Draft) -> Sequence[Mod]:
        """The mods that may write something about a message that enters the log."""
        if self._stopped:
            return ()
        off = self.guard.off
        found = [mod for mod in self._storing if self._watches(mod, draft)]
        return [mod for mod in found if (mod, "on_stored") not in off] if off else found

    def stored(
        self, message: Message, mods: Sequence[Mod]
    ) -> Sequence[tuple[Mod, tuple[Statement, ...]]]:
        """What these mods write about a message that enters the log."""
        found: list[tuple[Mod, tuple[Statement, ...]]] = []
        run = self.guard.run
        for mod in mods:
            limit = mod.config.time_limit
            try:
                rows = run(limit, mod, "on_stored", mod.on_stored, message)
                if rows != ():  # of most mods there is nothing to write about most messages
                    found.append((mod, run(limit, mod, "on_stored", _statements, rows)))
            except BaseException as error:  # noqa: BLE001  one mod's failure is its own
                self._failed(mod, "on_stored", error)
        return found

    # The rest ---------------------------------------------------------------------------------

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
        """The time that a mod asked for has come."""
        if mod in self._timers:
            self._call(mod, "on_timer", mod.on_timer, key)

    def reconfigure(self, mod: Mod, config: ModConfig) -> Sequence[Operation]:
        """Give a mod other settings; returns its operations as they are by those. Raises what the
        mod raises."""
        self.guard.forgive(mod)
        return self.guard.run(mod.config.time_limit, mod, "reconfigure", _reconfigured, mod, config)

    def _call(self, mod: Mod, name: str, hook: Callable[[*Ts], T], *args: *Ts) -> T | None:
        """What the hook answers; None if it fails or is switched off."""
        if self._stopped or (self.guard.off and (mod, name) in self.guard.off):
            return None
        try:
            return self.guard.run(mod.config.time_limit, mod, name, hook, *args)
        except BaseException as error:  # noqa: BLE001  one mod's failure is its own
            self._failed(mod, name, error)
            return None


def _reconfigured(mod: Mod, config: ModConfig) -> Sequence[Operation]:
    mod.reconfigure(config)
    mod.config = config  # whatever it made of it: limits and permissions are the hub's to keep
    return mod.operations()


async def _shown(mod: Mod, messages: Sequence[Message]) -> Sequence[Message]:
    """Raises `ValueError` if the hook answers with other messages."""
    shown = tuple(await mod.shown(messages))
    if [message.seq for message in shown] != [message.seq for message in messages]:
        raise ValueError("shown must answer with the messages that it was given, in their order")
    return shown


def _asleep(mod: Mod, draft: Draft, agents: Sequence[str]) -> frozenset[str]:
    return frozenset(mod.on_wake(draft, agents))


def _statements(answer: Sequence[Statement]) -> tuple[Statement, ...]:
    """Raises `TypeError` if `on_stored` answers anything else."""
    statements = tuple(answer)
    for statement in statements:
        if not isinstance(statement, Statement):
            raise TypeError(f"on_stored must answer with Statements, not {statement!r:.100}")
    return statements
