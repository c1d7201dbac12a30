"""The mod API: a class with hooks and operations.

    hook           called                                   returns
    watches        for each message, not measured           whether the mod may handle it
    on_message     for each message before it is routed     a verdict: Pass, Replace or Reject
    on_references  before that, for a message with a quote  a verdict
                   or attachments; can look them up
    takes_long     before on_message                        whether to call that in a thread
    on_wake        for each message that would wake agents  the agents that it must not wake
    on_stored      when a message enters the log            rows to write in the same transaction
    on_join        when a participant joins                 nothing
    on_leave       when its last connection closes          nothing
    on_turn        when a turn ends                         nothing
    on_timer       at a time that the mod requested         nothing
    shown          when messages are read                   the messages as they are shown

A verdict is a closed union, so a hook cannot return nothing by accident. Hooks are plain functions
that run in the hub's event loop and must return within the mod's time limit. Longer work belongs in
`host.spawn`, or in a thread (`takes_long`) if the verdict depends on it. If a hook raises, only its
mod fails: the message passes or is refused according to `on_failure`, owners get a notice, and the
hub continues. A hook that is too slow three times is disabled (hubbub.mods.guard).
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
    """The message passes unchanged."""


@dataclass(frozen=True, slots=True)
class Replace:
    """The message is replaced by `draft`. Sender and thread cannot change."""

    draft: Draft


@dataclass(frozen=True, slots=True)
class Reject:
    """The message is refused. The sender gets `reason` with the error code `rejected`."""

    reason: str


Verdict = Pass | Replace | Reject

PASS = Pass()


class ModConfig(Documented):
    """Base class of a mod's settings in YAML. Unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    on_failure: OnFailure = "pass"
    """What happens to a message if a hook fails: it passes or is refused."""
    time_limit: Span = 1.0
    """Maximum seconds for a call of a hook and for a step of an operation, which block the hub.
    A hook or operation that exceeds this three times in ten minutes is disabled."""
    permissions: Mapping[str, Permission] = Field(default_factory=dict)
    """Permissions of operations, by name, where they differ from the mod's defaults: `read` and
    `write` are for everyone, `admin` for owners."""


class Mod:
    """An extension of the hub.

    A subclass sets `name`, sets `Config` if it has settings, overrides the hooks it needs, and
    declares its operations. `self.host` gives access to the hub, from `start` on.
    """

    name: ClassVar[str]
    Config: ClassVar[type[ModConfig]] = ModConfig
    requires: ClassVar[tuple[str, ...]] = ()
    """Mods that must precede it in the YAML's list."""
    conflicts: ClassVar[tuple[str, ...]] = ()
    """Mods that cannot be in the same network."""
    migrations: ClassVar[str | None] = None
    """A folder next to the module of the class with numbered SQL scripts for its tables
    (0001_name.sql). All names in them start with the mod's name: `polls_vote`."""
    thread: ClassVar[bool] = False
    """Whether the mod has its own thread, `mod.<name>`, which everyone reads."""

    def __init__(self, config: ModConfig):
        self.config = config
        self.host: Host

    async def start(self) -> None:
        """Called when the hub is ready, before participants join. Load state into memory here."""

    async def stop(self) -> None:
        """Called when the hub stops. No hooks or operations are called afterwards."""

    def reconfigure(self, config: ModConfig) -> None:
        """Called when the settings change while the network runs."""
        self.config = config

    def watches(self, draft: Draft) -> bool:
        """Whether the mod may handle this message. If not, neither `on_message` nor `on_stored` is
        called with it. Called for every message and not measured: check only a field or two."""
        return True

    def on_message(self, draft: Draft) -> Verdict:
        """Called before the hub routes a message, but not for messages sent from this hook."""
        return PASS

    short: ClassVar[int] = 0
    """Length in characters up to which a message with only text never takes long. `takes_long` is
    not called for it."""

    def takes_long(self, draft: Draft) -> bool:
        """Whether `on_message` may take long for this message. If so, it runs in a thread,
        concurrently with the event loop and other hooks, with ten times the time limit. Later
        messages of the sender wait for the verdict."""
        return False

    async def on_references(self, draft: Draft) -> Verdict:
        """Called before `on_message` for a message with a quote or attachments. Can look them up
        and replace them, or any field that `on_message` can replace."""
        return PASS

    def on_wake(self, draft: Draft, agents: Sequence[str]) -> Collection[str]:
        """The agents that the message must not wake, of those it would wake. They still receive it.
        Called before limits and approvals are checked and before wakes are counted, and never for
        a message that ends a request."""
        return ()

    async def shown(self, messages: Sequence[Message]) -> Sequence[Message]:
        """The messages as readers see them, same number and order. Called when messages are read
        from the log, not when they are delivered."""
        return messages

    def on_stored(self, message: Message) -> Sequence[Statement]:
        """Statements to write in the same transaction as the message. Called again for the same
        message if the transaction is retried."""
        return ()

    def on_join(self, participant: str) -> None:
        """Called when a participant joins that was not connected before."""

    def on_leave(self, participant: str) -> None:
        """Called when the last connection of a participant closes."""

    def on_turn(self, turn: Turn) -> None:
        """Called when a turn ends, by its agent or a stop. Not called for wakes that were dropped
        before their turn started."""

    def on_timer(self, key: str) -> None:
        """Called at a time requested with `host.at` or `host.after` under this key."""

    def operations(self) -> Sequence[Operation]:
        """The operations that the mod adds to the network, which are also tools for agents: the
        methods declared with `@operation`."""
        return [self._bound(operation) for operation in self.declared()]

    @classmethod
    def declared(cls) -> Sequence[Operation]:
        """The operations as declared, bound to no mod and its settings."""
        operations: dict[str, Operation] = {}
        for kind in reversed(cls.__mro__):
            operations.update((k, v) for k, v in vars(kind).items() if isinstance(v, Operation))
        return list(operations.values())

    def _bound(self, operation: Operation) -> Operation:
        """The operation bound to this mod, with the permission from its settings."""
        permission = self.config.permissions.get(operation.name, operation.permission)
        return replace(
            operation,
            handler=partial(operation.handler, self),
            permission=permission,
            mod=self.name,
        )
