"""Tools of the software team: try the examples in a Python file, and release it.

`run_examples` runs what a model wrote: the config gives it a sandbox.
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
"""Where finished files go, below the folder in which the network was started."""
_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}\.py")
LONGEST = 4_000
"""Characters of a report."""

Source = Annotated[str, "The whole text of the file"]


@tool
def run_examples(source: Source) -> str:
    """Run a Python file and the examples (>>>) in its docstrings; tells what came out other than
    the examples say."""
    module = ModuleType("tried")
    try:
        exec(compile(source, "tried.py", "exec"), vars(module))
    except Exception as error:
        raise ToolFailed(
            f"the file does not run: {error!r}", error="broken", retry=False
        ) from error
    return _report(module)


def _report(module: ModuleType) -> str:
    told = StringIO()
    runner = doctest.DocTestRunner(verbose=False)
    found = doctest.DocTestFinder().find(module, "tried", module=False, globs=vars(module))
    for test in found:
        runner.run(test, out=told.write)
    if not runner.tries:
        return "the file runs, but has no examples in its docstrings: nothing was tried"
    if runner.failures:
        return f"{runner.failures} of {runner.tries} examples fail:\n{told.getvalue()[:LONGEST]}"
    return f"all {runner.tries} examples are right"


@tool
def release(
    name: Annotated[str, "What the file is to be called, such as leap_years.py"], source: Source
) -> str:
    """Put a finished Python file where people use it. A person is asked first."""
    if not _NAME.fullmatch(name):
        raise ToolFailed(
            f"{name[:60]!r} is no name for a module; they look like leap_years.py",
            error="wrong_name",
        )
    RELEASED.mkdir(exist_ok=True)
    (RELEASED / name).write_text(source, encoding="utf-8")
    return f"released as {RELEASED / name}"
