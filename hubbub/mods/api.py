"""The mod API: one class with hooks around what happens, and operations of its own.

    hook          called                                   answers
    watches       for each message, at no cost             whether it may concern the mod
    on_message    for each message before it is routed     a verdict: Pass, Replace or Reject
    on_references before that, for one that quotes or      a verdict
                  has attachments: may look them up
    takes_long    before on_message                        whether that may take long: then it is
                                                           called in a thread
    on_wake       for each message that would wake agents  those whom it shall not wake
    on_stored     when a message enters the log            rows to write in the same transaction
    on_join       a participant has joined                 nothing
    on_leave      its last connection is gone              nothing
    on_turn       a turn has ended                         nothing
    on_timer      at the time that the mod has asked for   nothing
    shown         when messages are read                   the messages as they are shown

A verdict is a closed union: there is no way to say nothing by accident. Hooks are plain functions
that run inside the hub's loop: they decide from what they are given, within the mod's time limit.
What takes longer is work for `host.spawn`, or, if the verdict depends on it, for a thread
(`takes_long`). A hook that raises is a failure of its mod alone: the message passes or is refused
as `on_failure` says, owners read a notice, and the hub goes on. One that is too slow three times is
switched off (hubbub.mods.guard).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal

from pydantic import ConfigDict, Field

from hubbub.config.units import Span
from hubbub.field_docs import Documented
from hubbub.mods.host import Host
from hubbub.mods.operation import Operation, Statement
from hubbub.protocol.messages import Draft, Message, Permission
from hubbub.protocol.turns import Turn

__all__ = ["PASS", "Mod", "ModConfig", "OnFailure", "Pass", "Reject", "Replace", "Verdict"]

OnFailure = Literal["pass", "reject"]


@dataclass(frozen=True, slots=True)
class Pass:
    """The message goes on as it is."""


@dataclass(frozen=True, slots=True)
class Replace:
    """Another message goes on in its place. Sender and thread cannot be replaced."""

    draft: Draft


@dataclass(frozen=True, slots=True)
class Reject:
    """The message stops here; the sender gets `reason` (error code `rejected`)."""

    reason: str


Verdict = Pass | Replace | Reject

PASS = Pass()


class ModConfig(Documented):
    """Base of a mod's settings in YAML: unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    on_failure: OnFailure = "pass"
    """What happens to a message whose hook has failed: it passes, or is refused."""
    time_limit: Span = 1.0
    """Seconds that one call of a hook may take, and one step of an operation, in which nothing
    else runs. What is slower three times in ten minutes is switched off."""
    permissions: Mapping[str, Permission] = Field(default_factory=dict)
    """Who may call its operations, by name, where that differs from what the mod says: `read` and
    `write` are for everybody, `admin` for owners."""


class Mod:
    """An extension of the hub.

    A subclass sets `name`, and `Config` if it has settings; overrides the hooks it needs; and lists
    its operations. `self.host` is what it may ask of the hub: there from `start` on.
    """

    name: ClassVar[str]
    Config: ClassVar[type[ModConfig]] = ModConfig
    requires: ClassVar[tuple[str, ...]] = ()
    """Mods that must stand before it in the YAML's list."""
    conflicts: ClassVar[tuple[str, ...]] = ()
    """Mods that may not be in the same network."""
    migrations: ClassVar[str | None] = None
    """A folder beside the module of the class with the numbered scripts of its tables
    (0001_name.sql). All names in them begin with the mod's own: `polls_vote`."""
    thread: ClassVar[bool] = False
    """Whether the mod has a thread of its own, `mod.<name>`, which everybody reads."""

    def __init__(self, config: ModConfig):
        self.config = config
        self.host: Host

    async def start(self) -> None:
        """The hub can be asked, and no participant has joined yet. Read here what memory needs."""

    async def stop(self) -> None:
        """The hub ends: no hook and no operation is called any more."""

    def reconfigure(self, config: ModConfig) -> None:
        """The settings have changed while the network runs."""
        self.config = config

    def watches(self, draft: Draft) -> bool:
        """Whether the mod may have something to say about this message; if not, neither
        `on_message` nor `on_stored` is called with it. Asked about every message, and so not
        measured: look at a field or two."""
        return True

    def on_message(self, draft: Draft) -> Verdict:
        """A message, before the hub routes it. What a mod says from within is not shown to it."""
        return PASS

    short: ClassVar[int] = 0
    """Characters up to which a text that carries nothing else never takes long: `takes_long` is not
    even asked."""

    def takes_long(self, draft: Draft) -> bool:
        """Whether `on_message` may take long for this one. Then it is called in a thread, beside
        the hub's loop and perhaps beside other hooks, and has ten times the time limit; what its
        sender says next waits for the verdict."""
        return False

    async def on_references(self, draft: Draft) -> Verdict:
        """A message that quotes another or has attachments, before `on_message`: what it refers to
        may be looked up. It may replace these (and the rest, as `on_message` may)."""
        return PASS

    def on_wake(self, draft: Draft, agents: Sequence[str]) -> Collection[str]:
        """Those of the agents, whom the message would wake, that it shall not wake: it reaches them
        all the same. Asked before limits and people are, and before the wakes are counted; never
        about what ends a request."""
        return ()

    async def shown(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Messages as readers see them: the same ones in the same order. Asked
        when they are read from the log, not when they are delivered."""
        return messages

    def on_stored(self, message: Message) -> Sequence[Statement]:
        """A message as it enters the log: what the mod writes about it, in the same transaction.
        Asked once more, for the same message, when that has to be written anew."""
        return ()

    def on_join(self, participant: str) -> None:
        """A participant has joined who was not connected before."""

    def on_leave(self, participant: str) -> None:
        """A participant is connected no longer."""

    def on_turn(self, turn: Turn) -> None:
        """A turn has ended, by its agent or by a stop. Wakes that were dropped before a turn began
        are no turns."""

    def on_timer(self, key: str) -> None:
        """The time that the mod asked for (`host.at`) under this key has come."""

    def operations(self) -> Sequence[Operation]:
        """Operations that the mod adds to the network; agents find them as tools. They are the
        methods that are declared with `@operation`."""
        found: dict[str, Operation] = {}
        for kind in reversed(type(self).__mro__):
            found.update((k, v) for k, v in vars(kind).items() if isinstance(v, Operation))
        return [self._own(operation) for operation in found.values()]

    def _own(self, operation: Operation) -> Operation:
        """The operation of this very mod, with the permission that its settings give it."""
        permission = self.config.permissions.get(operation.name, operation.permission)
        return replace(
            operation,
            handler=partial(operation.handler, self),
            permission=permission,
            mod=self.name,
        )
