"""Traces: the work of a network as OpenTelemetry spans, with the conventions for generative AI.

    send direct                      a message, until it is durable
      wake bob                       from then until bob's turn starts
        invoke_agent bob             the turn
          chat gpt-5-mini            a request to its model
          execute_tool lookup        a tool call
          send channel               a message sent by the turn

Spans are derived from the hub's log and its records of turns; agent processes export none. An
interaction is one trace. Ids of traces and spans are digests of the ids they represent, so they
are the same wherever they are computed. The standard environment variables configure exporters,
sampling and the service's name.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from hashlib import sha256
from importlib.metadata import entry_points
from threading import Thread
from time import time_ns
from typing import Final

from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags
from opentelemetry.util.types import AttributeValue

from hubbub.errors import StoreUnavailable, UserError
from hubbub.logs import get_logger
from hubbub.network.hub import Hub
from hubbub.network.log import Entry
from hubbub.network.queries import TurnById
from hubbub.network.records import Record, TurnEnded
from hubbub.network.services.turns.ending import turn_record
from hubbub.protocol.messages import Message
from hubbub.protocol.turns import Step, ToolCallRecord, Turn, TurnEnd

__all__ = ["traced"]

log = get_logger(__name__)

FLUSH_S = 5.0
"""Seconds that shutdown waits for the collector to accept the last spans."""
_FAILURES: Final = frozenset({"timeout", "model_error", "handler_error", "budget_exhausted"})
Attributes = Mapping[str, AttributeValue | None]


@asynccontextmanager
async def traced(hub: Hub, node: str = "") -> AsyncIterator[None]:
    """Export the hub's commits as spans inside this context; the resource names its `node`, if any.
    Raises `UserError` if an exporter is not installed or cannot be created."""
    network = hub.config.name
    configured = OTELResourceDetector().detect().attributes
    about = {"service.instance.id": node, "hubbub.network": network} if node else {}
    resource = Resource.create({"service.name": network, **configured, **about})
    processors = [BatchSpanProcessor(each) for each in _exporters(os.environ)]
    traces = Traces(hub, TracerProvider(resource=resource, shutdown_on_exit=False), processors)
    traces.with_content = _wants_content(os.environ)
    hub.listen(traces.committed, traces.recorded)
    try:
        yield
    finally:
        await traces.settle()
        await _flush(processors)


class Traces:
    """Creates spans from commits. Errors here do not affect the commit."""

    with_content = False
    """Whether spans include texts, arguments and results."""

    def __init__(self, hub: Hub, provider: TracerProvider, processors: Sequence[SpanProcessor]):
        """`provider` supplies the sampler and the resource."""
        self._store, self._epoch = hub.store, hub.kernel.state.epoch
        self._provider, self._processors = provider, processors
        self._scope = InstrumentationScope("hubbub")
        self._reading: set[asyncio.Task[None]] = set()

    def committed(self, entries: Sequence[Entry]) -> None:
        """Trace messages, which are durable now."""
        try:
            for entry in entries:
                self._message(Message.model_validate_json(entry.body), entry)
        except Exception:
            log.exception("cannot trace a message")

    def recorded(self, records: Sequence[Record]) -> None:
        """Trace records, which are durable now: ended turns are read back in the background."""
        for record in records:
            if isinstance(record, TurnEnded):
                task = asyncio.create_task(self._turn_of(record.id))
                self._reading.add(task)
                task.add_done_callback(self._reading.discard)

    async def settle(self) -> None:
        """Wait for the spans of all ended turns."""
        if self._reading:
            await asyncio.wait(self._reading)

    async def _turn_of(self, turn_id: str) -> None:
        try:
            stored = await self._store.read(TurnById(turn_id))
            if stored is None:
                return
            turn = turn_record(stored)
            read = [await self._store.message(int(name[1:])) for name in turn.start.messages]
            self._turn(turn, [Message.model_validate_json(body) for body in read if body])
        except StoreUnavailable as error:
            log.warning("cannot trace turn %s: %s", turn_id, error)
        except Exception:
            log.exception("cannot trace turn %s", turn_id)

    def _message(self, message: Message, entry: Entry) -> None:
        cause = entry.turn or message.cause_id
        woken = [each.participant for each in entry.decisions if each.reply is not None]
        self._span(
            f"send {message.type}",
            self._context(message.interaction_id, message.id),
            parent=self._context(message.interaction_id, cause) if cause else None,
            kind=SpanKind.PRODUCER,
            began=_ns(message.sent_at),
            attributes={
                "messaging.system": "hubbub",
                "messaging.operation.name": "send",
                "messaging.operation.type": "send",
                "messaging.message.id": message.id,
                "messaging.destination.name": message.thread_id,
                "gen_ai.conversation.id": message.thread_id,
                "hubbub.interaction.id": message.interaction_id,
                "hubbub.sender.id": message.sender_id,
                "hubbub.sender.kind": message.sender_kind,
                "hubbub.hop": message.hop,
                "hubbub.woken": woken or None,
                "hubbub.message.text": message.text if self.with_content else None,
            },
        )

    def _turn(self, turn: Turn, messages: Sequence[Message]) -> None:
        if not messages or turn.end is None:
            return
        woke, began = messages[-1], _ns(turn.started_at)
        interaction, ended = woke.interaction_id, _ns(turn.ended_at)
        context = self._context(interaction, turn.start.id)
        wake = self._context(interaction, f"wake {turn.start.id}")
        self._span(
            f"wake {turn.agent}",
            wake,
            parent=self._context(interaction, woke.id),
            kind=SpanKind.CONSUMER,
            began=min(_ns(woke.sent_at), began),
            ended=began,
            attributes={
                "messaging.system": "hubbub",
                "messaging.operation.name": "wake",
                "messaging.operation.type": "process",
                "messaging.message.id": woke.id,
                "messaging.destination.name": turn.start.thread_id,
                "gen_ai.agent.name": turn.agent,
            },
        )
        for step in turn.steps:
            self._step(turn, step, began, context)
        if turn.end.outcome == "model_error" and turn.start.model:
            self._failed_request(turn, turn.end, began, context)
        failed = turn.end.outcome in _FAILURES
        self._span(
            f"invoke_agent {turn.agent}",
            context,
            parent=wake,
            began=began,
            ended=ended,
            failed=(turn.end.reason or turn.end.outcome) if failed else None,
            links=[self._context(each.interaction_id, each.id) for each in messages[:-1]],
            attributes={
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": turn.agent,
                "gen_ai.conversation.id": turn.start.thread_id,
                "gen_ai.request.model": turn.start.model,
                "gen_ai.usage.input_tokens": turn.tokens_in,
                "gen_ai.usage.output_tokens": turn.tokens_out,
                "error.type": turn.end.outcome if failed else None,
                "hubbub.interaction.id": interaction,
                "hubbub.turn.id": turn.start.id,
                "hubbub.turn.outcome": turn.end.outcome,
                "hubbub.turn.attempts": turn.attempts,
                "hubbub.cost_usd": turn.cost_usd,
                "hubbub.prompt.id": turn.start.prompt_id,
            },
        )

    def _step(self, turn: Turn, step: Step, began: int, parent: SpanContext) -> None:
        model = step.model or turn.start.model
        if model and step.made is None and step.at_ms is not None:
            at = began + _ms(step.at_ms)
            self._span(
                f"chat {model}",
                self._context(parent.trace_id, f"{turn.start.id} {step.n}"),
                parent=parent,
                kind=SpanKind.CLIENT,
                began=at,
                ended=at + _ms(step.duration_ms or 0),
                attributes={
                    "gen_ai.operation.name": "chat",
                    "gen_ai.provider.name": "openai",  # the endpoints' protocol
                    "gen_ai.request.model": model,
                    "gen_ai.agent.name": turn.agent,
                    "gen_ai.conversation.id": turn.start.thread_id,
                    "gen_ai.usage.input_tokens": step.tokens_in,
                    "gen_ai.usage.output_tokens": step.tokens_out,
                    "gen_ai.response.finish_reasons": [step.finish_reason or "stop"],
                    "gen_ai.output.messages": self._output_messages(step),
                    "hubbub.step": step.n,
                    "hubbub.cost_usd": step.cost_usd,
                },
            )
        for call in step.calls:
            if call.at_ms is not None:
                self._call(turn, step, call, began, parent)

    def _failed_request(self, turn: Turn, end: TurnEnd, began: int, parent: SpanContext) -> None:
        """The model call with which a turn failed: there is no step of it, so it lasts from the
        work before until the turn's end."""
        work: list[Step | ToolCallRecord] = [*turn.steps]
        work += [call for step in turn.steps for call in step.calls]
        ended_ms = max(((each.at_ms or 0) + (each.duration_ms or 0) for each in work), default=0)
        ended = _ns(turn.ended_at)  # by the hub's clock
        self._span(
            f"chat {turn.start.model}",
            self._context(parent.trace_id, f"{turn.start.id} {len(turn.steps) + 1}"),
            parent=parent,
            kind=SpanKind.CLIENT,
            began=min(began + _ms(ended_ms), ended),
            ended=ended,
            failed=end.reason or end.outcome,
            attributes={
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": "openai",
                "gen_ai.request.model": turn.start.model,
                "gen_ai.agent.name": turn.agent,
                "gen_ai.conversation.id": turn.start.thread_id,
                "error.type": end.outcome,
                "hubbub.step": len(turn.steps) + 1,
            },
        )

    def _call(
        self, turn: Turn, step: Step, call: ToolCallRecord, began: int, parent: SpanContext
    ) -> None:
        at = began + _ms(call.at_ms or 0)
        content = self.with_content
        self._span(
            f"execute_tool {call.name}",
            self._context(parent.trace_id, f"{turn.start.id} {step.n} {call.id}"),
            parent=parent,
            began=at,
            ended=at + _ms(call.duration_ms or 0),
            failed=call.error,
            attributes={
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": call.name,
                "gen_ai.tool.type": "function",
                "gen_ai.tool.call.id": call.id,
                "gen_ai.tool.call.arguments": json.dumps(call.ran_with) if content else None,
                "gen_ai.tool.call.result": call.result if content else None,
                "gen_ai.agent.name": turn.agent,
                "error.type": call.error,
                "hubbub.step": step.n,
                "hubbub.tool.attempts": call.attempts,
            },
        )

    def _output_messages(self, step: Step) -> str | None:
        if not self.with_content:
            return None
        parts: list[dict[str, object]] = (
            [{"type": "text", "content": step.text}] if step.text else []
        )
        for call in step.calls:
            request = {"id": call.id, "name": call.name, "arguments": call.arguments}
            parts.append({"type": "tool_call", **request})
        reason = step.finish_reason or "stop"
        return json.dumps([{"role": "assistant", "parts": parts, "finish_reason": reason}])

    def _span(
        self,
        name: str,
        context: SpanContext,
        *,
        parent: SpanContext | None,
        began: int,
        attributes: Attributes,
        ended: int | None = None,
        kind: SpanKind = SpanKind.INTERNAL,
        failed: str | None = None,
        links: Sequence[SpanContext] = (),
    ) -> None:
        """`began` and `ended` are nanoseconds since the epoch; `ended` None: now."""
        if not context.trace_flags.sampled:
            return
        ok = Status(StatusCode.UNSET if failed is None else StatusCode.ERROR, failed)
        span = ReadableSpan(
            name,
            context,
            parent,
            self._provider.resource,
            {key: value for key, value in attributes.items() if value is not None},
            kind=kind,
            status=ok,
            links=[Link(each) for each in links],
            start_time=began,
            end_time=max(began, time_ns() if ended is None else ended),
            instrumentation_scope=self._scope,
        )
        for each in self._processors:
            each.on_end(span)

    def _context(self, interaction: str | int, what: str) -> SpanContext:
        """The span context of a message, wake, turn, step or call in an interaction or a trace."""
        trace = (
            interaction if isinstance(interaction, int) else _digest(16, self._epoch, interaction)
        )
        decision = self._provider.sampler.should_sample(None, trace, what).decision
        is_sampled = decision is Decision.RECORD_AND_SAMPLE
        flags = TraceFlags.SAMPLED if is_sampled else TraceFlags.DEFAULT
        return SpanContext(trace, _digest(8, self._epoch, what), False, TraceFlags(flags))


def _digest(size: int, *parts: str) -> int:
    return int.from_bytes(sha256(" ".join(parts).encode()).digest()[:size]) or 1


def _ns(at: datetime | None) -> int:
    return 0 if at is None else int(at.timestamp() * 1e6) * 1000


def _ms(duration: float) -> int:
    return int(duration * 1e6)


def _wants_content(environ: Mapping[str, str]) -> bool:
    """Whether spans include texts, arguments and results. Off by default: they are private."""
    value = environ.get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "")
    return value.strip().lower() in ("true", "span_only", "span_and_event")


def _exporters(environ: Mapping[str, str]) -> list[SpanExporter]:
    """The exporters in OTEL_TRACES_EXPORTER. Raises `UserError`."""
    names = [each.strip() for each in environ.get("OTEL_TRACES_EXPORTER", "otlp").split(",")]
    return [_exporter(name, environ) for name in names if name and name != "none"]


def _exporter(name: str, environ: Mapping[str, str]) -> SpanExporter:
    wanted = name
    if name == "otlp":
        both = environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
        protocol = environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", both)
        wanted = "otlp_proto_grpc" if protocol == "grpc" else "otlp_proto_http"
    entries = entry_points(group="opentelemetry_traces_exporter", name=wanted)
    if not entries:
        installed = sorted(entry_points(group="opentelemetry_traces_exporter").names)
        raise UserError(
            f"OTEL_TRACES_EXPORTER: the exporter {wanted} is not installed (installed: "
            f"{', '.join(installed)}); install its package, or choose another one"
        )
    try:
        exporter: SpanExporter = next(iter(entries)).load()()
    except Exception as error:
        raise UserError(f"OTEL_TRACES_EXPORTER: cannot use {wanted}: {error}") from error
    return exporter


async def _flush(processors: Sequence[SpanProcessor]) -> None:
    """Export the remaining spans. An unreachable collector does not block exit: the thread is a
    daemon."""
    ended, loop = asyncio.Event(), asyncio.get_running_loop()

    def shut_down() -> None:
        for each in processors:
            each.shutdown()
        loop.call_soon_threadsafe(ended.set)

    Thread(target=shut_down, name="last spans", daemon=True).start()
    try:
        async with asyncio.timeout(FLUSH_S):
            await ended.wait()
    except TimeoutError:
        log.warning("no collector accepted the last spans within %g s", FLUSH_S)
