"""The programs that are set beside those of other frameworks."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from benchmarks.frameworks.programs import FRAMEWORKS, TASKS, lines, play


def test_no_framework_has_a_shorter_program_for_a_task() -> None:
    for task in TASKS:
        others = [lines(framework, task) for framework in FRAMEWORKS if framework != "hubbub"]
        assert lines("hubbub", task) <= min(others), task


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_the_programs_print_their_answers(tmp_path: Path) -> None:
    await asyncio.gather(*(play("hubbub", task, tmp_path) for task in TASKS))
