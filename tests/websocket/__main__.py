"""`make test-websocket`: Autobahn's fuzzing client against the hub's connections, in ten minutes.

The suite needs Python 2.7, on the path or named by `PYTHON2`. It is installed from the package
index into `.venv/autobahn`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SUITE = "autobahntestsuite==0.8.2"
FOLDER = Path(sys.prefix) / "autobahn"
BINARY = ["1.2.*", "9.2.*", "9.4.*", "9.6.*", "9.8.*"]
"""A hub reads a binary message as text, and sends nothing else."""
LIBRARY = {"7.1.5": "a close within a fragmented message is answered with 1002, not with 1000"}
"""Permitted deviations of the websockets library from the suite's expectations."""
GOOD = ("OK", "NON-STRICT", "INFORMATIONAL")
RUN = "from autobahntestsuite.wstest import run; run()"


def main() -> int:
    """Runs all cases, plain and compressed. Returns the exit code."""
    python = os.environ.get("PYTHON2") or shutil.which("python2.7")
    if python is None:
        print("the suite needs Python 2.7: put it on the path, or set PYTHON2", flush=True)
        return 2
    if not (FOLDER / "zope" / "__init__.py").exists():
        pip = [python, "-m", "pip", "install", "--quiet", "--target", str(FOLDER), SUITE]
        subprocess.run(pip, check=True)
        (FOLDER / "zope" / "__init__.py").touch()
    plain = _run_cases(python, [], ["*"], [*BINARY, "12.*", "13.*"])
    return max(plain, _run_cases(python, ["deflate"], ["12.*", "13.*"], []))


def _run_cases(python: str, mode: list[str], cases: list[str], excluded: list[str]) -> int:
    with tempfile.TemporaryDirectory() as folder, _echo(mode) as port:
        spec = Path(folder) / "spec.json"
        server = {"agent": "hubbub", "url": f"ws://127.0.0.1:{port}"}
        tried = {"outdir": folder, "servers": [server], "cases": cases, "exclude-cases": excluded}
        spec.write_text(json.dumps({**tried, "exclude-agent-cases": {}}))
        client = [python, "-c", RUN, "-m", "fuzzingclient", "-s", str(spec)]
        environment = {**os.environ, "PYTHONPATH": str(FOLDER)}
        subprocess.run(client, env=environment, check=True, stdout=subprocess.DEVNULL)
        results = json.loads((Path(folder) / "index.json").read_text())["hubbub"]
    print(" ".join(mode) or "plain", dict(Counter(r["behavior"] for r in results.values())))
    failed = [
        case
        for case, result in results.items()
        if not {result["behavior"], result["behaviorClose"]} <= {*GOOD}
    ]
    for case in sorted(failed):
        reason = LIBRARY.get(case, "FAILED")
        print(f"  {case}: {results[case]['behavior']}, {results[case]['behaviorClose']} ({reason})")
    return int(not {*failed} <= {*LIBRARY} or not results)


@contextmanager
def _echo(mode: list[str]) -> Iterator[int]:
    """The port of an echo server with the hub's connections."""
    command = [sys.executable, "-m", "tests.websocket.echo", *mode]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield int(server.stdout.readline())
        finally:
            server.terminate()


if __name__ == "__main__":
    sys.exit(main())
