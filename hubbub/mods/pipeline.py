"""The pipeline: what happens passes the mods in the order of the network's YAML.

Each hook runs guarded: what it raises, or that it takes too long, is its mod's failure and nobody
else's. `on_failure` in the mod's settings says whether a message passes then or is refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence, Set
from typing import ParamSpec, TypeVar

from hubbub.errors import OperationError, StoreUnavailable
from hubbub.mods.api import PASS, Mod, ModConfig
from hubbub.mods.guard import LateHook, Watch
from hubbub.mods.operation import Operation
from hubbub.mods.rows import Statement
from hubbub.mods.verdicts import Rejected, after, hide, show
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Draft, Message
from hubbub.protocol.turns import Turn
from hubbub.user_code import contained

__all__ = ["Failed", "Pipeline"]

P = ParamSpec("P")
T = TypeVar("T")

BESIDE = 10
"""Times its limit that a hook has in a thread, where it holds nobody up and waits for its turns."""

Failed = Callable[[Mod, str, BaseException], None]
"""Is told of a failure: the mod, the hook's name, what it raised."""


class Pipeline:
    """The mods of a network, in the order of its YAML."""

    def __init__(self, mods: Sequence[Mod] = (), failed: Failed | None = None):
        self.mods = tuple(mods)
        self._failed = failed or (lambda mod, hook, error: None)
        self.watch = Watch()
        self._stopped = False
        self._asked: list[Mod] = []
        """Mods whose `on_message` runs now: what one says from within it, it is not asked about."""
        # A mod that keeps the hook of the base class has nothing to say, and costs nothing.
        self._judges = self._with("on_message")
        self._slow = frozenset(self._with("takes_long"))
        self._beside = asyncio.Semaphore(1)
        """Of hooks in threads: more than one would only take turns with the loop more often."""
        self._storing = self._with("on_stored")
        self._joining, self._leaving = self._with("on_join"), self._with("on_leave")
        self._turns, self._timers = self._with("on_turn"), self._with("on_timer")
        self._referring, self._muting = self._with("on_references"), self._with("on_wake")
        self._showing = self._with("shown")

    def _with(self, hook: str) -> tuple[Mod, ...]:
        return tuple(mod for mod in self.mods if getattr(type(mod), hook) is not getattr(Mod, hook))

    def start(self) -> None:
        """Interrupt hooks that take too long, from now on."""
        if self.mods:
            self.watch.start()

    def stop(self) -> None:
        """No hook is called any more; messages pass as they are. What a mod does in its end is
        still watched: ending the watch is for whoever waits for that."""
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
    def mutes(self) -> bool:
        """Whether there is a mod that keeps messages from waking somebody."""
        return bool(self._muting)

    @property
    def shows(self) -> bool:
        """Whether there is a mod that shows messages otherwise than they stand in the log."""
        return bool(self._showing)

    # Messages ---------------------------------------------------------------------------------

    def run(self, draft: Draft) -> Draft:
        """The draft as the mods leave it. Raises `OperationError` when one of them rejects it."""
        if self._stopped:
            return draft
        if not self._judges:
            return draft
        show(draft)
        try:
            for mod in self._judges:
                if not self._asked or mod not in self._asked:
                    judged = self._judged(mod, draft)
                    if judged is not draft:
                        hide(draft)
                        draft = judged
                        show(draft)
        finally:
            hide(draft)
        return draft

    def _judged(self, mod: Mod, draft: Draft) -> Draft:
        self._asked.append(mod)
        try:
            verdict = self.watch.run(mod.config.time_limit, mod.on_message, draft)
            return draft if verdict is PASS else after(mod, draft, verdict)
        except Rejected as rejected:
            raise rejected.error from None
        except BaseException as error:  # noqa: BLE001  one mod's failure is its own
            return self._without(mod, "on_message", draft, error)
        finally:
            self._asked.pop()

    def takes_long(self, draft: Draft) -> bool:
        """Whether the draft is one for `run_beside`, since judging it may take long."""
        for mod in () if self._stopped else self._slow:  # noqa: SIM110  every message comes by
            if self._takes_long(mod, draft):
                return True
        return False

    def _takes_long(self, mod: Mod, draft: Draft) -> bool:
        try:
            return bool(self.watch.run(mod.config.time_limit, mod.takes_long, draft))
        except BaseException as error:  # noqa: BLE001  one mod's failure is its own
            self._failed(mod, "takes_long", error)
            return False

    async def run_beside(self, draft: Draft) -> Draft:
        """As `run`; mods that may take long are asked in a thread."""
        for mod in () if self._stopped else self._judges:
            seen = draft
            show(seen)
            try:
                if mod in self._slow and self._takes_long(mod, seen):
                    draft = await self._judged_beside(mod, seen)
                else:
                    draft = self._judged(mod, seen)
            finally:
                hide(seen)
        return draft

    async def _judged_beside(self, mod: Mod, draft: Draft) -> Draft:
        late = asyncio.timeout(BESIDE * mod.config.time_limit)
        try:
            async with self._beside, late:
                verdict = await asyncio.to_thread(mod.on_message, draft)
            return after(mod, draft, verdict)
        except Rejected as rejected:
            raise rejected.error from None
        except Exception as error:  # noqa: BLE001  one mod's failure is its own
            why = LateHook() if late.expired() else error
            return self._without(mod, "on_message", draft, why)

    def _without(self, mod: Mod, hook: str, draft: Draft, error: BaseException) -> Draft:
        """What becomes of a draft about which a mod has failed. Raises `OperationError`."""
        self._failed(mod, hook, error)
        if mod.config.on_failure == "pass" or draft.sender_kind == "system":
            return draft  # what the hub itself has to say is not lost by a broken mod
        raise OperationError(
            ErrorCode.REJECTED,
            f"{mod.name}: the mod has failed, and lets no message through while it does; "
            "the operator is told",
            details={"mod": mod.name},
        ) from error

    async def referred(self, draft: Draft) -> Draft:
        """The draft as the mods leave it that have looked up what it refers to. Raises
        `OperationError` when one of them rejects it, and `StoreUnavailable`."""
        for mod in () if self._stopped else self._referring:
            seen = draft
            show(seen)
            try:
                work = mod.on_references(seen)
                with contained():
                    verdict = await self.watch.steps(mod.config.time_limit, work)
                draft = after(mod, draft, verdict)
            except Rejected as rejected:
                raise rejected.error from None
            except (StoreUnavailable, asyncio.CancelledError):
                raise
            except Exception as error:  # noqa: BLE001  one mod's failure is its own
                draft = self._without(mod, "on_references", draft, error)
            finally:
                hide(seen)
        return draft

    def asleep(self, draft: Draft, agents: Sequence[str]) -> Set[str]:
        """Those whom the draft would wake and shall not, as the mods say."""
        found: set[str] = set()
        show(draft)
        for mod in () if self._stopped else self._muting:
            limit = mod.config.time_limit
            try:
                asleep = self.watch.run(limit, mod.on_wake, draft, agents)
                if asleep != ():
                    found |= self.watch.run(limit, frozenset, asleep)
            except BaseException as error:  # noqa: BLE001  one mod's failure is its own
                self._failed(mod, "on_wake", error)
        hide(draft)
        return found

    async def shown(self, messages: Sequence[Message]) -> Sequence[Message]:
        """The messages as the mods show them. Raises `StoreUnavailable`."""
        for mod in () if self._stopped or not messages else self._showing:
            try:
                with contained():
                    work = _shown(mod, messages)
                    messages = await self.watch.steps(mod.config.time_limit, work)
            except (StoreUnavailable, asyncio.CancelledError):
                raise
            except Exception as error:  # noqa: BLE001  one mod's failure is its own
                self._failed(mod, "shown", error)
        return messages

    def stored(self, message: Message) -> Sequence[tuple[Mod, tuple[Statement, ...]]]:
        """What the mods write about a message that enters the log."""
        found: list[tuple[Mod, tuple[Statement, ...]]] = []
        for mod in () if self._stopped else self._storing:
            limit = mod.config.time_limit
            try:
                statements = self.watch.run(limit, mod.on_stored, message)
                if statements != ():  # of most mods there is nothing to write about most messages
                    found.append((mod, self.watch.run(limit, _statements, statements)))
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
        mod raises, and `LateHook`."""
        return self.watch.run(mod.config.time_limit, _reconfigured, mod, config)

    def _call(
        self, mod: Mod, name: str, hook: Callable[P, T], *args: P.args, **kw: P.kwargs
    ) -> T | None:
        """What the hook answers; None if it fails."""
        if self._stopped:
            return None
        try:
            return self.watch.run(mod.config.time_limit, hook, *args, **kw)
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


def _statements(answer: Sequence[Statement]) -> tuple[Statement, ...]:
    """Raises `TypeError` if `on_stored` answers anything else."""
    statements = tuple(answer)
    for statement in statements:
        if not isinstance(statement, Statement):
            raise TypeError(f"on_stored must answer with Statements, not {statement!r:.100}")
    return statements
