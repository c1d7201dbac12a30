"""Parts of the page that sets Hubbub beside agent frameworks."""

from __future__ import annotations

from benchmarks.frameworks.programs import FRAMEWORKS, HERE, TASKS, lines, requirement
from generating.tables import table

__all__ = ["frameworks_parts"]


def frameworks_parts() -> dict[str, str]:
    rows = [
        (what, *(str(lines(framework, task)) for framework in FRAMEWORKS))
        for task, what in TASKS.items()
    ]
    versions = [requirement(each) for each in FRAMEWORKS if each != "hubbub"]
    named = ", ".join(f"`{one}`" for each in versions for one in each.splitlines())
    programs = {task: (HERE / "hubbub" / f"{task}.py").read_text("utf-8") for task in TASKS}
    return {
        "frameworks_table": table(("lines", *FRAMEWORKS.values()), rows),
        "frameworks_versions": named,
        **{f"framework_program_{t}": f"```python\n{text}```" for t, text in programs.items()},
    }
