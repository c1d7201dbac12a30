"""Networks of real processes, on a machine that may do much else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hubbub.client import client
from tests.e2e.support.forked import DEADLINE_S


@pytest.fixture(autouse=True, scope="session")
def _patient() -> Iterator[None]:
    """Nobody gives up a hub that has no turn on the processor for ten seconds while its agents
    start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "HANDSHAKE_S", DEADLINE_S)
        yield
