"""Runs the mods of a network: starts, calls and notifies them, and isolates their failures."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Sequence
from datetime import datetime
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import Any

from hubbub.config.paths import beside
from hubbub.errors import OperationError, StoreUnavailable, UserError
from hubbub.logs import get_logger
from hubbub.mods.api import Mod, ModConfig
from hubbub.mods.guard import HookTimeout
from hubbub.mods.host import Host, NetworkFacts
from hubbub.mods.loader import scripts_of
from hubbub.mods.operation import Operation
from hubbub.network.caller import OPERATOR
from hubbub.network.kernel import Kernel
from hubbub.network.log import Entry
from hubbub.network.mods.failures import Failures
from hubbub.network.mods.operations import ModOperations
from hubbub.network.mods.port import Alarms, KernelPort
from hubbub.network.policy import Gate
from hubbub.network.queries import ModsWithTables
from hubbub.network.records import ModRows, Record
from hubbub.network.service import Registry, Service
from hubbub.network.session import Session
from hubbub.network.store.backups import files_of
from hubbub.network.threads import Thread
from hubbub.network.wakes import Decision, Reason
from hubbub.protocol import thread_ids
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Draft, Message
from hubbub.user_code import contained, describe_error

__all__ = ["Mods", "message_of"]

# Messages for mods while they enter the log: built from the entry, not parsed.


_OFTEN = {
    "sender_id",
    "sender_kind",
    "thread_id",
    "type",
    "content",
    "recipients",
    "text_representation",
    "reply_to",
    "mentions",
    "cause_id",
    "untrusted",
}
"""Fields copied from a plain draft: one with a text and no other fields."""
_NOWHERE = {"unresolved", "awaits", "notes"}
"""Fields that no message has."""

_seldom = attrgetter(*(n for n in Draft.__struct_fields__ if n not in _OFTEN | _NOWHERE))
_NOTHING = _seldom(Draft("", "system", "", "direct", ""))
_BLANK = {name: field.get_default() for name, field in Message.model_fields.items()}
"""Defaults in declaration order; the others are filled in."""
_NAMES = set(Message.model_fields)
"""Shared by all messages, as they are immutable and copies have their own."""

_when = lru_cache(maxsize=8)(datetime.fromisoformat)
"""Cached, as the entries of a batch have the same time."""


def message_of(entry: Entry) -> Message:
    """The entry's message: equal to parsing its body, at a third of the cost."""
    draft = entry.draft
    if type(draft.content) is not str or _seldom(draft) != _NOTHING:
        return Message.model_validate_json(entry.body)
    values = _BLANK.copy()
    values["id"] = f"m{entry.seq}"
    values["seq"], values["tseq"] = entry.seq, entry.tseq
    values["thread_id"], values["type"] = draft.thread_id, draft.type
    values["sender_id"], values["sender_kind"] = draft.sender_id, draft.sender_kind
    values["recipients"], values["mentions"] = draft.recipients, draft.mentions
    values["content"], values["text_representation"] = draft.content, draft.text_representation
    values["reply_to"], values["cause_id"] = draft.reply_to, draft.cause_id
    values["untrusted"], values["hop"] = draft.untrusted, entry.hop
    values["interaction_id"] = entry.interaction or f"i{entry.seq}"
    values["sent_at"] = _when(entry.sent_at)
    # What `Message.model_construct` does, three times as fast.
    message = Message.__new__(Message)
    put = object.__setattr__
    put(message, "__dict__", values)
    put(message, "__pydantic_fields_set__", _NAMES)
    put(message, "__pydantic_extra__", None)
    put(message, "__pydantic_private__", None)
    return message


log = get_logger(__name__)

STOP_S = 5.0
"""Seconds for a mod to stop before the hub ends without it."""
FINISH_S = 1.0
"""Seconds for work of mods that is still running when they have stopped."""
START_S, START_STEP_S = 60.0, 10.0
"""Seconds for a mod to start, and for one step of that, during which nothing else runs."""


def folder_of(store: str) -> Path | None:
    """The folder beside a store for files of mods; None if the store is in memory."""
    path = beside(store)
    return None if path is None else files_of(path)


class Mods(Service, Gate):
    """Runs the mods of one hub."""

    def __init__(
        self,
        kernel: Kernel,
        failures: Failures,
        registry: Registry,
        parked: Callable[[str], Collection[str]],
    ):
        """`parked` returns the turns of an agent that wait for a person."""
        super().__init__(kernel)
        self._registry, self._parked = registry, parked
        self.watches = kernel.pipeline.muting
        self._folder = folder_of(kernel.config.store)
        self.failed, self.failures = failures.add, failures.last
        self.pipeline = kernel.pipeline
        self._operations = ModOperations(self.pipeline, self.failed)
        self._by_name = {mod.name: mod for mod in self.pipeline.mods}
        self._alarms = Alarms(kernel.clock, kernel.steady, self.pipeline.timer)
        self._started: list[Mod] = []
        self._wrote = False
        """Whether rows about messages are being stored."""
        self._connected: set[str] = set()
        """Participants that were announced to the mods as connected."""

    # Lifecycle ----------------------------------------------------------------------------

    async def admit(self) -> None:
        """Migrate the mods' tables. Raises `UserError`."""
        kernel = self.kernel
        facts = NetworkFacts(
            name=kernel.config.name,
            epoch=kernel.state.epoch,
            clock=kernel.clock,
            steady=kernel.steady,
            owners=None if kernel.config.auth == "open" else kernel.file.owners,
            models=kernel.file.models,
            operations=self._registry.by_name,
            mods=self.pipeline.mods,
        )
        for mod in self.pipeline.mods:
            await self.store.admit_mod(mod.name, scripts_of(type(mod)))
            folder = self._folder / mod.name if self._folder is not None else None
            port = KernelPort(kernel, mod, self._alarms, self._run, self._parked)
            mod.host = Host(mod.name, facts, port, folder)
        if self.pipeline.keeps:
            self.kernel.writes.rows = (self._rows_of,)
        await self._warn_of_missing_mods()

    async def _warn_of_missing_mods(self) -> None:
        """Warn about mods with tables that are not configured: without them, messages that were
        edited or deleted with them are shown in their original form."""
        configured = {mod.name for mod in self.pipeline.mods}
        missing = [
            name for name in await self.store.read(ModsWithTables()) if name not in configured
        ]
        if missing:
            log.warning(
                "mods with data in this store are not in `mods` of the YAML: it is ignored, and "
                "messages that were edited or deleted with them are shown in their original form",
                mods=missing,
            )

    def threads(self) -> Sequence[Thread]:
        """The mods' own threads, which everyone reads."""
        own = (mod.name for mod in self.pipeline.mods if type(mod).thread)
        return [self.state.threads.ensure(thread_ids.mod(name)) for name in own]

    async def start(self) -> None:
        """Start the mods in order. Raises `UserError` if one fails to start."""
        self.pipeline.start()
        for mod in self.pipeline.mods:
            late = asyncio.timeout(START_S)
            try:
                with contained():
                    async with late:
                        await self.pipeline.guard.steps(mod, "start", mod.start(), START_STEP_S)
            except Exception as error:
                why = describe_error(error)
                if late.expired():
                    why = f"anything that takes longer than {START_S:g} s belongs in `host.spawn`"
                raise UserError(f"the mod {mod.name} cannot start: {why}") from error
            self._started.append(mod)

    async def stop(self) -> None:
        """Stop the mods in reverse order; they are not called any more."""
        self._alarms.stop()
        self.pipeline.stop()
        while self._started:
            mod, late = self._started.pop(), asyncio.timeout(STOP_S)
            try:
                with contained():
                    async with late:
                        await self.pipeline.guard.steps(mod, "stop", mod.stop(), STOP_S)
            except Exception as error:  # noqa: BLE001  the hub must still end
                over = late.expired()
                self.failed(mod, "stop", HookTimeout(STOP_S, STOP_S, off=False) if over else error)
        await self.pipeline.guard.finish(FINISH_S)
        self.pipeline.guard.stop()

    # Operations ---------------------------------------------------------------------------

    def operations(self) -> Sequence[Operation]:
        """The mods' operations with their guards. Passes on what a mod's `operations` raises, as
        the hub is not running yet."""
        return [
            self._operations.guarded(mod, each)
            for mod in self.pipeline.mods
            for each in mod.operations()
        ]

    # The gate -----------------------------------------------------------------------------

    def judge(self, entry: Entry) -> None:
        """Withdraw wakes that a mod suppresses, in place, before they are counted. The end of a
        request is exempt, as the requester waits for it."""
        draft, decisions = entry.draft, entry.decisions
        waking = [who for who, _, reply in decisions if reply is not None]
        mark = draft.request
        if waking and not (mark is not None and mark.id):
            asleep = self.pipeline.not_woken(draft, waking)
            for n, decision in enumerate(decisions if asleep else ()):
                if decision.reply is not None and decision.participant in asleep:
                    decisions[n] = Decision(decision.participant, Reason.MUTED, None)

    # Rows ---------------------------------------------------------------------------------

    def _rows_of(self, entry: Entry) -> Sequence[Record]:
        mods = self.pipeline.storing(entry.draft)
        rows = self.pipeline.stored(message_of(entry), mods) if mods else ()
        if not rows:
            return ()
        self._wrote = True
        return [ModRows(mod.name, statements, asked=False) for mod, statements in rows]

    def recorded(self, records: Sequence[Record]) -> None:
        """Report rows that were refused in a written batch."""
        if not self._wrote:
            return
        self._wrote = False
        for rows in records:
            if isinstance(rows, ModRows) and rows.refused is not None and not rows.asked:
                self.failed(self._by_name[rows.mod], "on_stored", rows.refused)

    # Events -------------------------------------------------------------------------------

    def joined(self, session: Session) -> None:
        """Notify mods of a participant's first connection."""
        participant = session.participant
        if session.observe or participant == OPERATOR:
            return
        if participant not in self._connected:
            self._connected.add(participant)
            self.pipeline.joined(participant)

    def absent(self, participant: str, *, replaced: bool) -> None:
        if participant in self._connected and not replaced:
            self._connected.discard(participant)
            self.pipeline.left(participant)

    def look(self) -> None:
        self._alarms.look()

    def _run(self, mod: Mod, work: Coroutine[Any, Any, None]) -> None:
        self.kernel.spawn(self._guarded(mod, work))

    async def _guarded(self, mod: Mod, work: Coroutine[Any, Any, None]) -> None:
        try:
            with contained():
                await self.pipeline.guard.steps(mod, "spawn", work)
        except asyncio.CancelledError:
            raise
        except StoreUnavailable:
            log.warning("the store refused a mod's write", mod=mod.name)
        except Exception as error:  # noqa: BLE001  isolate the mod's failure
            self.failed(mod, "spawn", error)

    # Settings -----------------------------------------------------------------------------

    def configure(self, mod: Mod, config: ModConfig) -> None:
        """Change a mod's settings while it runs. If it fails, raises `OperationError` and restores
        the old settings."""
        before = mod.config
        try:
            operations = self.pipeline.reconfigure(mod, config)
        except Exception as error:
            self.failed(mod, "reconfigure", error)
            self._take_back(mod, before)
            reason = describe_error(error)
            raise OperationError(
                ErrorCode.REJECTED,
                f"the mod {mod.name} rejected these settings and keeps its old ones: {reason}",
                details={"mod": mod.name},
            ) from error
        self._registry.replace(self._operations.guarded(mod, each) for each in operations)

    def _take_back(self, mod: Mod, before: ModConfig) -> None:
        try:
            self.pipeline.reconfigure(mod, before)
        except Exception as error:  # noqa: BLE001  isolate the mod's failure
            self.failed(mod, "reconfigure", error)
        mod.config = before
