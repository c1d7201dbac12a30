"""What only the owners of a network may do."""

from __future__ import annotations

from hubbub.errors import OperationError
from hubbub.mods.operation import Commit, operation
from hubbub.network.auth import new_token, token_hash
from hubbub.network.caller import OPERATOR, Caller
from hubbub.network.queries import TokensByParticipant
from hubbub.network.records import Record, TokenAdded, TokenRevoked
from hubbub.network.service import Service
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
from hubbub.protocol.codes import CloseCode, ErrorCode
from hubbub.protocol.operations import Done

__all__ = ["AdminService"]


class AdminService(Service):
    """Tokens, and how the hub is doing: for owners only."""

    @operation(permission="admin", tool=False, idempotent=True, output=NewToken)
    def add_token(self, call: Caller, args: TokenFor) -> Commit[Record]:
        """Make a token that proves a participant; it is shown this once, the hub keeps its hash."""
        if not thread_ids.is_participant_id(args.participant):
            raise OperationError(
                ErrorCode.BAD_REQUEST,
                f"participant: nobody may be called {args.participant[:64]!r}",
            )
        self._check_may_hand_out(call)
        token = new_token()
        added = TokenAdded(token_hash(token), args.participant)
        return Commit([added], NewToken(participant=args.participant, token=token))

    @operation(permission="admin", tool=False, idempotent=True, output=Done)
    def revoke_tokens(self, call: Caller, args: TokenFor) -> Commit[Record]:
        """Make all stored tokens of a participant invalid and close its sockets."""
        self._check_may_hand_out(call)

        async def answer() -> Done:
            self.revoke(args.participant)
            return Done()

        return Commit([TokenRevoked(args.participant)], answer)

    def revoke(self, participant: str) -> None:
        """Close the participant's sockets, and refuse those that are just joining."""
        self.state.revocations[participant] += 1
        for session in list(self.kernel.fanout.of(participant)):
            session.close(CloseCode.REVOKED, "the token was revoked")

    @operation(permission="admin", tool=False)
    async def list_tokens(self, call: Caller, args: ListTokens) -> TokenCounts:
        """Tell who has how many stored tokens; the tokens themselves are not kept."""
        counts = await self.store.read(TokensByParticipant())
        return TokenCounts(
            participants=tuple(
                TokenCount(participant=name, tokens=count) for name, count in counts.items()
            )
        )

    def _check_may_hand_out(self, call: Caller) -> None:
        """Raises `OperationError` for people of an open network.

        There a token does not let somebody in, it keeps the others out: out of a launched agent's
        place, which nobody may take who has proved nothing.
        """
        if self.kernel.config.auth == "open" and call.participant != OPERATOR:
            raise OperationError(
                ErrorCode.FORBIDDEN,
                "in an open network tokens are the operator's: `hubbub tokens add <participant>`",
            )

    @operation(permission="admin", tool=False)
    def network_status(self, call: Caller, args: ReadStatus) -> NetworkStatus:
        """Tell how the hub is doing: sessions, position of the log, queues."""
        return NetworkStatus(
            network=self.kernel.config.name,
            epoch=self.state.epoch,
            head=self.kernel.log.head,
            sessions=self.kernel.metrics.sessions,
            present=len(self.state.presence),
            participants=len(self.state.participants()),
            threads=len(self.state.threads),
            channels=len(self.state.channels),
            commit_queue=self.kernel.log.waiting,
            draining=self.kernel.draining.is_set(),
            down=tuple(
                map(self.state.describe, filter(None, map(self.state.get, self.state.down)))
            ),
        )
