"""Administration, for owners only: tokens, the hub's status, its mods and its models."""

from __future__ import annotations

import inspect
from collections import Counter
from urllib.parse import urlsplit

from hubbub.errors import ModelError, OperationError, UserError
from hubbub.mods.api import Mod
from hubbub.mods.completions import Completions
from hubbub.mods.loader import check_permissions, settings_of
from hubbub.mods.operation import Commit, bad_request, forbidden, not_found, operation, over_limit
from hubbub.network.auth import new_token, token_hash
from hubbub.network.caller import OPERATOR, Caller
from hubbub.network.kernel import Kernel
from hubbub.network.mods.runtime import Mods
from hubbub.network.queries import TokensByParticipant
from hubbub.network.records import Record, TokenAdded, TokenRevoked
from hubbub.network.service import Registry, Service
from hubbub.network.targets import nearest
from hubbub.protocol import thread_ids
from hubbub.protocol.admin import (
    ConfigureMod,
    ListMods,
    ListTokens,
    ModState,
    ModStates,
    NetworkStatus,
    NewToken,
    ReadStatus,
    TokenCount,
    TokenCounts,
    TokenFor,
)
from hubbub.protocol.agents import AskModel, ListModels, ModelAnswer, ModelChoice, Models
from hubbub.protocol.codes import CloseCode, ErrorCode
from hubbub.protocol.operations import Done
from hubbub.wording import did_you_mean

__all__ = ["AdminService"]

MAX_CONCURRENT = 2
"""Concurrent model questions per owner: each occupies one of a session's read slots."""


class AdminService(Service):
    """Questions to models made here are not stored, sent or counted against a budget."""

    def __init__(self, kernel: Kernel, mods: Mods, registry: Registry, completions: Completions):
        super().__init__(kernel)
        self._mods, self._registry = mods, registry
        self._completions, self._asking = completions, Counter[str]()

    # Tokens -----------------------------------------------------------------------------------

    @operation(permission="admin", tool=False, idempotent=True, output=NewToken)
    def add_token(self, call: Caller, args: TokenFor) -> Commit[Record]:
        """Create a token that proves a participant. It is shown only once; the hub stores a
        hash."""
        if not thread_ids.is_participant_id(args.participant):
            raise bad_request(f"participant: {args.participant[:64]!r} is not a valid name")
        self._check_may_hand_out(call)
        token = new_token()
        added = TokenAdded(token_hash(token), args.participant)
        return Commit([added], NewToken(participant=args.participant, token=token))

    @operation(permission="admin", tool=False, idempotent=True, output=Done)
    def revoke_tokens(self, call: Caller, args: TokenFor) -> Commit[Record]:
        """Make all tokens of a person, or the stored ones of an agent, invalid and close its
        sockets."""
        self._check_may_hand_out(call)

        async def answer() -> Done:
            self.revoke(args.participant)
            return Done()

        return Commit([TokenRevoked(args.participant)], answer)

    def revoke(self, participant: str) -> None:
        """Close the participant's sockets, and refuse those still joining."""
        self.state.revocations[participant] += 1
        for session in list(self.kernel.fanout.of(participant)):
            session.close(CloseCode.REVOKED, "the token was revoked")

    @operation(permission="admin", tool=False)
    async def list_tokens(self, call: Caller, args: ListTokens) -> TokenCounts:
        """List how many stored tokens each participant has; the tokens themselves are not
        stored."""
        counts = await self.store.read(TokensByParticipant())
        return TokenCounts(
            participants=tuple(
                TokenCount(participant=name, tokens=count) for name, count in counts.items()
            )
        )

    def _check_may_hand_out(self, call: Caller) -> None:
        """Raises `OperationError` for people in an open network.

        There a token does not admit its holder, it shuts everyone else out. Otherwise an unproven
        caller could take the place of a launched agent.
        """
        if self.kernel.config.auth == "open" and call.participant != OPERATOR:
            raise forbidden(
                "in an open network tokens are the operator's: `hubbub tokens add <participant>`"
            )

    @operation(permission="admin", tool=False)
    def network_status(self, call: Caller, args: ReadStatus) -> NetworkStatus:
        """Show the hub's status: sessions, log position, queues."""
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

    # Mods -------------------------------------------------------------------------------------

    @operation(tool=False)
    def list_mods(self, call: Caller, args: ListMods) -> ModStates:
        """List the mods of the network, in the order that messages pass through them."""
        return ModStates(mods=tuple(self._described(mod) for mod in self.kernel.pipeline.mods))

    @operation(permission="admin", tool=False, idempotent=True)
    def configure_mod(self, call: Caller, args: ConfigureMod) -> ModState:
        """Change a mod's settings while it runs. Invalid settings change nothing. They last until
        the network ends, as it starts with those in its YAML."""
        mod = self._named(args.name)
        try:
            config = settings_of(type(mod), args.settings)
            check_permissions(mod, config)
        except UserError as error:
            raise bad_request(str(error)) from error
        self._mods.configure(mod, config)
        return self._described(mod)

    def _named(self, name: str) -> Mod:
        mods = {mod.name: mod for mod in self.kernel.pipeline.mods}
        if name in mods:
            return mods[name]
        hint = did_you_mean(name, mods, "; see list_mods")
        raise not_found(f"the network has no mod {name[:64]!r}{hint}")

    def _described(self, mod: Mod) -> ModState:
        own = [op.name for op in self._registry.values() if op.mod == mod.name]
        about = " ".join((inspect.getdoc(mod) or "").split("\n\n")[0].split())
        failures = self.kernel.metrics.mod_failures[mod.name]
        return ModState(name=mod.name, about=about, operations=tuple(own), failures=failures)

    # Models -----------------------------------------------------------------------------------

    @operation(permission="admin", tool=False)
    def list_models(self, call: Caller, args: ListModels) -> Models:
        """List the models of the network's file, and their prices."""
        return Models(
            models=tuple(
                ModelChoice(
                    name=name,
                    model=model.model,
                    endpoint=urlsplit(model.base_url).netloc.rpartition("@")[2],
                    usd_in=model.price.input if model.price else None,
                    usd_out=model.price.output if model.price else None,
                    context_window=model.context_window,
                )
                for name, model in self.kernel.file.models.items()
            )
        )

    @operation(permission="admin", tool=False)
    async def ask_model(self, call: Caller, args: AskModel) -> ModelAnswer:
        """Ask a model directly, without an agent, to check that it answers or to try an
        instruction. It has no tools. The usual price applies."""
        models = self.kernel.file.models
        if args.model not in models:
            raise not_found(f"model: no model is named {args.model!r}{nearest(args.model, models)}")
        if self._asking[call.participant] >= MAX_CONCURRENT:
            text = f"{MAX_CONCURRENT} of your questions are still running; wait for one of them"
            raise over_limit(text)
        system = [{"role": "system", "content": args.instruction}] if args.instruction else []
        messages = [{"role": each.role, "content": each.text} for each in args.messages]
        began, steady = self.kernel.steady.now(), self.kernel.steady
        self._asking[call.participant] += 1
        try:
            answer = await self._completions.ask(models[args.model], [*system, *messages])
        except ModelError as error:
            text = f"{args.model} did not answer: {error}"
            raise OperationError(ErrorCode.NOT_TRIED, text) from error
        finally:
            self._asking[call.participant] -= 1
        return ModelAnswer(
            text=answer.text,
            seconds=round(steady.now() - began, 3),
            tokens_in=answer.tokens_in,
            tokens_out=answer.tokens_out,
            usd=answer.usd,
        )
