"""`make test-a2a`: the compatibility kit of the A2A project against a hub, over both bindings.

The kit is in no package index: `A2A_TCK` names a checkout of it. Its dependencies are installed
from the index into `.venv/a2a-tck`.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

from pydantic import JsonValue

from hubbub import Agent, Message, Network
from hubbub.config.budgets import BreakerConfig
from hubbub.config.models import A2aConfig, Limits
from tests.a2a.plugin import SCENARIO

FOLDER = Path(sys.prefix) / "a2a-tck"
NO_BREAKER = BreakerConfig(enabled=False)
KNOWN = {
    "TestAgentCardLastModified::test_last_modified_present": "a header that is optional",
    "TestDataArtifact::test_task_has_data_artifact": "a report is a text, with data as JSON in it",
    "TestMessageResponse::test_returns_message_with_text_part": "each message makes a task",
    "test_requirements::test_must_requirement[CORE-SEND-003": "its text requires the error "
    "that its check counts as a failure",
    "test_requirements::test_must_requirement[CORE-MULTI-002a": "as before",
}
"""Expected failures by test name, and why they are no defects of the hub."""


class Kit(Agent):
    """An agent for the kit's scenarios."""

    async def on_request(self, message: Message) -> JsonValue:
        uris = (file.uri for file in message.attachments)
        scenario = next((uri for uri in uris if uri.startswith(SCENARIO)), "")
        name = scenario.removeprefix(f"{SCENARIO}tck-")
        match name:
            case _ if name.startswith("input-required"):
                report = {"request": message.task, "status": "question", "text": "And then?"}
                await self.call("report", **report)
                return None
            case _ if name.startswith("reject-task"):
                raise ValueError("rejected")
            case _ if name.startswith("artifact-file"):
                link = {"name": "output.txt", "uri": "https://example.com/output.txt"}
                files: JsonValue = [{**link, "media_type": "text/plain"}]
                report = {"request": message.task, "status": "result", "text": "output.txt"}
                await self.call("report", **report, attachments=files)
                return None
            case _ if "artifact-text" in name:
                return "Generated text content"
        return "Hello from TCK"


def main() -> int:
    """Runs the kit. Returns the exit code."""
    kit = os.environ.get("A2A_TCK", "")
    if not (Path(kit) / "run_tck.py").is_file():
        print(
            "A2A_TCK must name a checkout of github.com/a2aproject/a2a-tck, branch 1.0-dev",
            flush=True,
        )
        return 2
    if not (FOLDER / "bin" / "pytest").exists():
        subprocess.run([sys.executable, "-m", "venv", str(FOLDER)], check=True)
        install = [str(FOLDER / "bin" / "pip"), "install", "--quiet", kit]
        subprocess.run(install, check=True)
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.xml"
        asyncio.run(_run_kit(Path(kit), results))
        return _summarize(results)


async def _run_kit(kit: Path, results: Path) -> None:
    agent = Kit()
    agent.name = "kit"
    door = A2aConfig(agents=["kit"], push_hosts=["localhost", "example.com"])
    limits = Limits(calls_per_second=1000, burst=10_000)
    async with Network(agent, people=["ann"], a2a=door, limits=limits, breaker=NO_BREAKER) as net:
        url = (await net.serve(page=False)).replace("ws:", "http:").rstrip("/")
        command = [
            str(FOLDER / "bin" / "python"), "-m", "pytest", "-q", "--tb=short", "-p", "plugin",
            f"--sut-host={url}", f"--junitxml={results}", "tests/compatibility",
        ]  # fmt: skip
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent), "NO_PROXY": "*"}
        process = await asyncio.create_subprocess_exec(*command, cwd=kit, env=environment)
        await process.wait()


def _summarize(results: Path) -> int:
    """Prints the failed tests; returns 1 if one of them is unexpected."""
    counts = Counter[str]()
    unexpected = False
    for case in ElementTree.parse(results).getroot().iter("testcase"):
        outcome = next((child.tag for child in case if child.tag != "properties"), "passed")
        counts[outcome] += 1
        if outcome in ("failure", "error"):
            name = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
            reason = next((why for test, why in KNOWN.items() if name.startswith(test)), None)
            unexpected |= reason is None
            print(f"  {name}: {reason or 'FAILED'}")
    print(dict(counts))
    return int(unexpected or not counts["passed"])


if __name__ == "__main__":
    sys.exit(main())
