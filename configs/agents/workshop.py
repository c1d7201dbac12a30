"""Tools of the software team: run the examples in a Python file, and release the file.

`run_examples` executes a model's code, so the config runs it in a sandbox.
"""

from __future__ import annotations

import doctest
import re
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import Annotated

from hubbub import tool
from hubbub.agents.tools.base import ToolFailed

__all__ = ["RELEASED", "release", "run_examples"]

RELEASED = Path("released")
"""The folder for finished files, relative to the folder in which the network was started."""
_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}\.py")
LONGEST = 4_000
"""Characters of a report."""

Source = Annotated[str, "The whole text of the file"]


@tool
def run_examples(source: Source) -> str:
    """Run a Python file and the examples (>>>) in its docstrings; returns the differences between
    actual and expected output."""
    module = ModuleType("tried")
    try:
        exec(compile(source, "tried.py", "exec"), vars(module))
    except Exception as error:
        raise ToolFailed(
            f"the file does not run: {error!r}", error="broken", retry=False
        ) from error
    return _report(module)


def _report(module: ModuleType) -> str:
    output = StringIO()
    runner = doctest.DocTestRunner(verbose=False)
    examples = doctest.DocTestFinder().find(module, "tried", module=False, globs=vars(module))
    for test in examples:
        runner.run(test, out=output.write)
    if not runner.tries:
        return "the file runs, but has no examples in its docstrings, so nothing was tested"
    if runner.failures:
        return f"{runner.failures} of {runner.tries} examples fail:\n{output.getvalue()[:LONGEST]}"
    return f"all {runner.tries} examples are right"


@tool
def release(name: Annotated[str, "The file's name, such as leap_years.py"], source: Source) -> str:
    """Release a finished Python file for use. A person must approve it first."""
    if not _NAME.fullmatch(name):
        raise ToolFailed(
            f"{name[:60]!r} is not a valid module name; use a name such as leap_years.py",
            error="wrong_name",
        )
    RELEASED.mkdir(exist_ok=True)
    (RELEASED / name).write_text(source, encoding="utf-8")
    return f"released as {RELEASED / name}"
