"""Results in the form that CI servers read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from xml.etree.ElementTree import Element, ElementTree, SubElement, indent

from hubbub.agents.prompt.escape import reveal

__all__ = ["CaseVerdict", "Suite", "write_junit"]


@dataclass(frozen=True, slots=True)
class CaseVerdict:
    """What came of one case. `error`: it could not be judged."""

    name: str
    status: Literal["passed", "failed", "error"]
    told: str
    """In a few words; for failures and errors."""
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
            told = SubElement(case, kind, message=reveal(verdict.told))
            told.text = reveal(verdict.details)
    return element


def _count(suite: Suite, status: str) -> int:
    return sum(verdict.status == status for verdict in suite.verdicts)
