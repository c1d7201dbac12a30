"""OpenTelemetry spans of a network, as received by a collector through OTLP over HTTP."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from hubbub import LlmAgent, Network, NoAnswer
from hubbub.app.traces import traced
from hubbub.testing.model_script import Refusal
from hubbub.testing.model_server import ModelServer, load_script
from hubbub.testing.network import LocalNetwork
from tests.e2e.support.config_network import ROOT, run_here
from tests.e2e.support.http_servers import QuietHandler, http_server
from tests.interaction.agent_harness import call, playing, says
from tests.interaction.peers import config

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parent / "scripts" / "team.yaml"


class Collector:
    """The exported spans, in order of arrival."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.services: set[str] = set()
        self.nodes: set[tuple[object, object]] = set()
        """Names of nodes and of networks."""
        self.url = ""

    def take(self, body: bytes) -> None:
        for group in ExportTraceServiceRequest.FromString(body).resource_spans:
            resource = values(group.resource.attributes)
            self.services.add(resource["service.name"])
            self.nodes.add((resource.get("service.instance.id"), resource.get("hubbub.network")))
            self.spans += [span for scope in group.scope_spans for span in scope.spans]


@contextmanager
def collecting() -> Iterator[Collector]:
    collector = Collector()

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            collector.take(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

    with http_server(Handler) as address:
        collector.url = f"http://{address}"
        yield collector


def values(attributes: Iterable[KeyValue]) -> dict[str, str]:
    """The string attributes."""
    return {each.key: each.value.string_value for each in attributes if each.value.string_value}


CONTENT = {"hubbub.message.text", "gen_ai.output.messages", "gen_ai.tool.call.arguments"}


@pytest.mark.behaviour("Q-14")
@pytest.mark.parametrize("with_content", [False, True])
async def test_an_interaction_is_one_trace_of_messages_wakes_turns_model_calls_and_tools(
    with_content: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with collecting() as collector:
        capture = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
        monkeypatch.setenv(capture, str(with_content).lower())
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        monkeypatch.setenv("OTEL_SERVICE_NAME", "newsdesk")
        async with ModelServer(load_script(SCRIPT)) as model:
            variables = {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "scripted"}
            team = ROOT / "configs" / "team.yaml"
            async with run_here(team, tmp_path, variables) as network:
                ann = await network.join("ann")
                await ann.tells("coordinator", "Why is the sky blue?")
                await ann.hears("coordinator", lambda m: m.text.startswith("Why is the sky blue? "))
                await ann.client.call("read_thread", thread="dm.ann.coordinator")
    assert collector.services == {"newsdesk"}
    by_id = {span.span_id: span for span in collector.spans}
    assert len(by_id) == len(collector.spans)
    (root,) = [
        span
        for span in collector.spans
        if span.name == "send direct" and values(span.attributes).get("hubbub.sender.id") == "ann"
    ]
    trace = [span for span in collector.spans if span.trace_id == root.trace_id]
    tree = {(by_id[s.parent_span_id].name, s.name) for s in trace if s.parent_span_id in by_id}
    assert {
        ("send direct", "wake coordinator"),
        ("wake coordinator", "invoke_agent coordinator"),
        ("invoke_agent coordinator", "execute_tool send_text_message"),
        ("invoke_agent coordinator", "send direct"),
        ("wake researcher", "invoke_agent researcher"),
        ("wake writer", "invoke_agent writer"),
    } <= tree
    chats = [span for span in trace if span.name.startswith("chat ")]
    assert {by_id[span.parent_span_id].name for span in chats} == {
        f"invoke_agent {name}" for name in ("coordinator", "researcher", "writer")
    }
    assert all(span.start_time_unix_nano <= span.end_time_unix_nano for span in trace)
    keys = {key for span in trace for key in values(span.attributes)}
    assert keys & CONTENT == (CONTENT if with_content else set())


async def test_the_model_call_that_ends_a_turn_is_a_failed_span(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with playing(says(call("list_participants")), Refusal(status=401)) as model:
        with collecting() as collector:
            monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
            bot = LlmAgent("bot", model="m", base_url=model.base_url, retries=0)
            async with Network(bot) as net, traced(net.hub):
                with pytest.raises(NoAnswer):
                    await net.ask("bot", "who is here?")
    turn = next(span for span in collector.spans if span.name == "invoke_agent bot")
    first, failed = [span for span in collector.spans if span.name == "chat m"]
    assert failed.parent_span_id == first.parent_span_id == turn.span_id
    assert (first.status.code, failed.status.code) == (
        Status.STATUS_CODE_UNSET,
        Status.STATUS_CODE_ERROR,
    )
    assert "refused the API key" in failed.status.message
    assert values(failed.attributes)["error.type"] == "model_error"
    assert failed.end_time_unix_nano == turn.end_time_unix_nano


async def test_spans_on_a_node_name_the_node_and_the_network(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        file = config(network={"name": "newsroom"})
        async with LocalNetwork(file) as network, traced(network.hub, "n1"):
            ann = await network.join("ann", "human")
            await ann.call("broadcast_text_message", text="hello")
    assert len(collector.spans) == 1
    assert collector.nodes == {("n1", "newsroom")}
    assert collector.services == {"newsroom"}, "the network's name, as none is configured"
