"""`python -m benchmarks.frameworks [FRAMEWORK...]`: run the same tasks as programs of each."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from benchmarks.frameworks.programs import FRAMEWORKS, TASKS, lines, play, requirement
from hubbub.errors import UserError


async def _all(frameworks: list[str]) -> int:
    failed = 0
    for framework in frameworks:
        tried = "this version" if framework == "hubbub" else requirement(framework)
        print(f"{FRAMEWORKS[framework]} ({', '.join(tried.split())})")
        for task, what in TASKS.items():
            with tempfile.TemporaryDirectory() as home:
                try:
                    await play(framework, task, Path(home))
                    result = "works"
                except UserError as exc:
                    failed += 1
                    result = f"FAILS\n{exc}"
            print(f"  {lines(framework, task):3} lines  {what}: {result}", flush=True)
    return failed


if __name__ == "__main__":
    unknown = set(sys.argv[1:]) - set(FRAMEWORKS)
    if unknown:
        sys.exit(f"no framework {', '.join(sorted(unknown))}; there are: {', '.join(FRAMEWORKS)}")
    sys.exit(1 if asyncio.run(_all(sys.argv[1:] or list(FRAMEWORKS))) else 0)
