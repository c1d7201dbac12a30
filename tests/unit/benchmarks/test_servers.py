from __future__ import annotations

import pytest

from benchmarks.load import Pace, measure
from benchmarks.servers import start
from benchmarks.sides import relay_fan, relay_pairs


@pytest.mark.slow
async def test_everything_sent_through_the_relay_arrives_or_the_round_is_void() -> None:
    async with start("benchmarks.relay") as server:
        async with relay_pairs(server, 2) as side:
            interval = await measure(side, Pace(window=4, warm_up_s=0.05, measured_s=0.2))
            assert interval.rate > 0
            assert interval.ack_p50_ms is None
            assert all(lane.done == lane.sent for lane in side.lanes)
            assert interval.cpu_us > 0
            assert server.rss_kib() > 0
            assert server.waits()
        async with relay_fan(server, 5) as side:
            interval = await measure(side, Pace(window=2, warm_up_s=0.05, measured_s=0.2))
            assert interval.p99_ms >= interval.p50_ms > 0
        async with relay_pairs(server, 1) as side:
            await server.stop()
            with pytest.raises((ConnectionError, OSError)):
                await measure(side, Pace(window=1, warm_up_s=5.0, measured_s=5.0))


@pytest.mark.slow
async def test_a_server_that_ends_at_once_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="before it listened"):
        async with start("benchmarks.stats"):
            raise AssertionError("it never listens")
