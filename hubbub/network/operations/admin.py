"""What only the owners of a network may do."""

from __future__ import annotations

from hubbub.errors import OperationError
from hubbub.mods.operation import operation
from hubbub.network.auth import new_token, token_hash
from hubbub.network.caller import OPERATOR, Caller, Recording
from hubbub.network.queries import TokensByParticipant
from hubbub.network.records import TokenAdded, TokenRevoked
from hubbub.protocol import thread_ids
from hubbub.protocol.admin import (
    ListTokens,
    NetworkStatus,
    NewToken,
    ReadStatus,
    TokenCount,
    TokenCounts,
    TokenFor,
)
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.operations import Done

__all__ = ["add_token", "list_tokens", "network_status", "revoke_tokens"]


@operation(permission="admin", tool=False, idempotent=True, output=NewToken)
def add_token(call: Caller, args: TokenFor) -> Recording:
    """Make a token that proves a participant; it is shown this once, the hub keeps its hash."""
    if not thread_ids.is_participant_id(args.participant):
        raise OperationError(
            ErrorCode.BAD_REQUEST, f"participant: nobody may be called {args.participant[:64]!r}"
        )
    _check_may_hand_out(call)
    token = new_token()
    added = TokenAdded(token_hash(token), args.participant)
    return Recording(lambda head: [added], NewToken(participant=args.participant, token=token))


@operation(permission="admin", tool=False, idempotent=True, output=Done)
def revoke_tokens(call: Caller, args: TokenFor) -> Recording:
    """Make all stored tokens of a participant invalid and close its sockets."""
    _check_may_hand_out(call)

    async def answer() -> Done:
        await call.hub.revoke(args.participant)
        return Done()

    return Recording(lambda head: [TokenRevoked(args.participant)], answer)


@operation(permission="admin", tool=False)
async def list_tokens(call: Caller, args: ListTokens) -> TokenCounts:
    """Tell who has how many stored tokens; the tokens themselves are not kept."""
    counts = await call.hub.store.read(TokensByParticipant())
    return TokenCounts(
        participants=tuple(
            TokenCount(participant=name, tokens=count) for name, count in counts.items()
        )
    )


def _check_may_hand_out(call: Caller) -> None:
    """Raises `OperationError` for people of an open network.

    There a token does not let somebody in, it keeps the others out: out of a launched agent's
    place, which nobody may take who has proved nothing.
    """
    if call.hub.config.auth == "open" and call.participant != OPERATOR:
        raise OperationError(
            ErrorCode.FORBIDDEN,
            "in an open network tokens are the operator's: `hubbub token add <participant>`",
        )


@operation(permission="admin", tool=False)
def network_status(call: Caller, args: ReadStatus) -> NetworkStatus:
    """Tell how the hub is doing: sessions, position of the log, queues."""
    hub = call.hub
    return NetworkStatus(
        network=hub.config.name,
        epoch=hub.state.epoch,
        head=hub.log.head,
        sessions=hub.metrics.sessions,
        present=len(hub.state.presence),
        participants=len(hub.state.participants()),
        threads=len(hub.state.threads),
        channels=len(hub.state.channels),
        commit_queue=hub.log.waiting,
        draining=hub.draining,
        down=tuple(map(hub.state.describe, filter(None, map(hub.state.get, hub.state.down)))),
    )
