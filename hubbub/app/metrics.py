"""Metrics of nodes and gateways, on a separate port; a network's own metrics are at its hub."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response

from hubbub.network.server import bind, parse_listen, quiet_logger

__all__ = ["Figures", "serve_metrics"]


class Figures(Collector):
    """Gauges and counters of one process, whose name is their label `node`."""

    def __init__(self, node: str, figures: Callable[[], Mapping[tuple[str, str], float]]):
        """`figures` returns values by name and help text; names of counters end with `_total`."""
        self._node, self._figures = node, figures

    def collect(self) -> Iterator[Metric]:
        for (name, text), value in self._figures().items():
            kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
            family: Metric = kind(f"hubbub_{name}", text, labels=["node"])
            family.add_sample(f"hubbub_{name}", {"node": self._node}, value)
            yield family


@asynccontextmanager
async def serve_metrics(listen: str, render: Callable[[], bytes]) -> AsyncIterator[None]:
    """Answer requests on `listen` (host:port) with `render()`; does nothing if `listen` is empty.

    Raises `UserError` if the address is invalid or in use.
    """
    if not listen:
        yield
        return

    async def respond(connection: ServerConnection, request: Request) -> Response:
        return connection.respond(HTTPStatus.OK, render().decode())

    async def close(connection: ServerConnection) -> None:
        """Never called: `respond` answers all requests."""

    bound = bind(*parse_listen(listen))
    async with serve(close, sock=bound, process_request=respond, logger=quiet_logger()):
        yield
