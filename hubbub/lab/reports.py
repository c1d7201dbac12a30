"""Reports of case results, for other programs and for comparison with the next run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from xml.etree.ElementTree import Element, ElementTree, SubElement, indent

from pydantic import TypeAdapter

from hubbub.agents.prompt.escape import reveal

__all__ = ["CaseVerdict", "PreviousResults", "Suite", "write_junit"]

Counts = tuple[int, int]
"""Runs that passed, and runs that completed."""
_COUNTS = TypeAdapter(dict[str, Counts])


class PreviousResults:
    """The results of cases in the last run, by name, in a file next to the config."""

    def __init__(self, folder: Path):
        self._path = folder / ".hubbub-tests.json"
        self.counts: Mapping[str, Counts] = {}
        with suppress(OSError, ValueError):  # without the file there is nothing to compare
            self.counts = _COUNTS.validate_json(self._path.read_bytes())

    def put(self, counts: Mapping[str, Counts]) -> None:
        """Store new results, replacing those of the same cases."""
        with suppress(OSError):  # a read-only folder stores no results
            self._path.write_bytes(_COUNTS.dump_json({**self.counts, **counts}, indent=1))


# JUnit --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CaseVerdict:
    """The result of one case. `error`: it could not be judged."""

    name: str
    status: Literal["passed", "failed", "error"]
    summary: str
    """A short message; for failures and errors."""
    details: str = ""
    seconds: float = 0.0


@dataclass(slots=True)
class Suite:
    """The verdicts of one file."""

    name: str
    verdicts: list[CaseVerdict] = field(default_factory=list)


def write_junit(path: Path, suites: Sequence[Suite]) -> None:
    """Write the file. Raises OSError."""
    root = Element("testsuites")
    for suite in suites:
        root.append(_suite(suite))
    indent(root)
    ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _suite(suite: Suite) -> Element:
    element = Element(
        "testsuite",
        name=reveal(suite.name),
        tests=str(len(suite.verdicts)),
        failures=str(_count(suite, "failed")),
        errors=str(_count(suite, "error")),
        time=f"{sum(v.seconds for v in suite.verdicts):.3f}",
    )
    for verdict in suite.verdicts:
        case = SubElement(
            element,
            "testcase",
            classname=reveal(suite.name),
            name=reveal(verdict.name),
            time=f"{verdict.seconds:.3f}",
        )
        if verdict.status != "passed":
            kind = "failure" if verdict.status == "failed" else "error"
            problem = SubElement(case, kind, message=reveal(verdict.summary))
            problem.text = reveal(verdict.details)
    return element


def _count(suite: Suite, status: str) -> int:
    return sum(verdict.status == status for verdict in suite.verdicts)
