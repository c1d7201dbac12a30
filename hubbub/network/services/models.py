"""The models of the network's file, and questions of owners to them."""

from __future__ import annotations

from collections import Counter
from urllib.parse import urlsplit

from hubbub.errors import ModelError, OperationError
from hubbub.mods.completions import Completions
from hubbub.mods.operation import operation
from hubbub.network.caller import Caller
from hubbub.network.kernel import Kernel
from hubbub.network.service import Service
from hubbub.network.targets import nearest
from hubbub.protocol.agents import AskModel, ListModels, ModelAnswer, ModelChoice, Models
from hubbub.protocol.codes import ErrorCode

__all__ = ["ModelService"]

MOST_AT_ONCE = 2
"""Questions of one owner under way: each holds one of the calls that a session may read with."""


class ModelService(Service):
    """For owners only. Nothing of what is asked here is stored, sent or counted in a budget."""

    def __init__(self, kernel: Kernel, completions: Completions):
        super().__init__(kernel)
        self._completions, self._asking = completions, Counter[str]()

    @operation(permission="admin", tool=False)
    def list_models(self, call: Caller, args: ListModels) -> Models:
        """List the models of the network's file, and what they cost."""
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
        """Ask a model directly, without any agent: to see whether it answers, or how it would with
        an instruction. It has no tools; it costs what it costs."""
        known = self.kernel.file.models
        if args.model not in known:
            text = f"model: there is no model {args.model!r}{nearest(args.model, known)}"
            raise OperationError(ErrorCode.NOT_FOUND, text)
        if self._asking[call.participant] >= MOST_AT_ONCE:
            text = f"{MOST_AT_ONCE} questions of yours are under way; wait for one of them"
            raise OperationError(ErrorCode.LIMIT, text)
        system = [{"role": "system", "content": args.instruction}] if args.instruction else []
        said = [{"role": each.role, "content": each.text} for each in args.messages]
        began, steady = self.kernel.steady.now(), self.kernel.steady
        self._asking[call.participant] += 1
        try:
            answer = await self._completions.ask(known[args.model], [*system, *said])
        except ModelError as error:
            text = f"{args.model} does not answer: {error}"
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
