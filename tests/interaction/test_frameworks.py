"""The programs that are compared with those of other frameworks."""

from __future__ import annotations

from benchmarks.frameworks.programs import FRAMEWORKS, HERE, TASKS, lines
from benchmarks.frameworks.scripts import INPUT, PRINTED, script
from hubbub.testing.model_server import ModelServer
from tests.programs import printed


def test_no_framework_has_a_shorter_program_for_a_task() -> None:
    for task in TASKS:
        others = [lines(framework, task) for framework in FRAMEWORKS if framework != "hubbub"]
        assert lines("hubbub", task) <= min(others), task


async def test_the_compared_programs_print_the_expected_answers() -> None:
    for task in TASKS:
        program = HERE / "hubbub" / f"{task}.py"
        async with ModelServer(script("hubbub", task)) as model:
            output = await printed(program, model, folder=HERE, typed=INPUT)
        assert output[-1].endswith(PRINTED[task])
