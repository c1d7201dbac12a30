"""The participants of the network, and its operations."""

from __future__ import annotations

from hubbub.errors import OperationError
from hubbub.mods.operation import operation
from hubbub.network.caller import Caller
from hubbub.network.kernel import Kernel
from hubbub.network.service import Registry, Service
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.operations import (
    DescribeOperations,
    ListParticipants,
    OperationSchemas,
    Participants,
)

__all__ = ["ParticipantService"]


class ParticipantService(Service):
    """Lists participants, and describes the operations of the core and of mods."""

    def __init__(self, kernel: Kernel, registry: Registry):
        super().__init__(kernel)
        self._registry = registry

    @operation()
    def list_participants(self, call: Caller, args: ListParticipants) -> Participants:
        """List everyone in the network: agents and people, what they can do, and who is present."""
        state = self.state
        people = sorted(state.all_participants(), key=lambda person: (person.kind, person.id))
        if args.after is not None:
            last = state.get(args.after)
            if last is None:
                text = f"after: no participant is named {args.after!r}"
                raise OperationError(ErrorCode.UNKNOWN_PARTICIPANT, text)
            people = [each for each in people if (each.kind, each.id) > (last.kind, last.id)]
        page = people[: args.limit]
        return Participants(
            participants=tuple(map(state.describe, page)), more=len(people) > len(page)
        )

    @operation(tool=False)
    def describe_operations(self, call: Caller, args: DescribeOperations) -> OperationSchemas:
        """Read the JSON Schemas of operations: inputs and outputs. Cache them by the hash in
        `ready`, and ask only for new ones."""
        allowed = {op.name: op for op in self._registry.values() if call.may(op.permission)}
        names = dict.fromkeys(args.names) if args.names else allowed
        return OperationSchemas(
            operations=tuple(allowed[name].info() for name in names if name in allowed)
        )
