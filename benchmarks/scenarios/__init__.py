"""What is measured, by the name that `--only` takes."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.bench import Scenario
from benchmarks.scenarios import (
    direct,
    doors,
    fanout,
    log_size,
    memory,
    mods,
    prompt,
    start,
    turn,
    wake,
)

__all__ = ["SCENARIOS"]

SCENARIOS: Mapping[str, Scenario] = {
    "direct": direct.run,
    "fanout": fanout.run,
    "memory": memory.run,
    "mods": mods.run,
    "log_size": log_size.run,
    "wake": wake.run,
    "prompt": prompt.run,
    "turn": turn.run,
    "start": start.run,
    "doors": doors.run,
}
