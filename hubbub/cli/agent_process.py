"""The agent process that `hubbub up` starts and restarts: `hubbub agents run` for its YAML.

    python -m hubbub.cli.agent_process hubbub.yaml clerk

It is not typed by people, so it loads no commands and starts in half the time. On Linux it is a
fork of a process that has loaded everything:

    python -m hubbub.cli.agent_process --fork 7 hubbub.app.agents
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from hubbub.app.lifeline import watch_parent

__all__ = ["main"]


def main(*arguments: str) -> int:
    """Run the agents until SIGTERM, or fork for each that is to run. Returns the exit code."""
    if arguments[0] != "--fork":
        return run(*arguments)
    fork = _serve(*arguments[1:])
    return 0 if fork is None else run(*fork)


def _serve(control: str, *modules: str) -> Sequence[str] | None:
    import socket
    from importlib import import_module

    from hubbub.app.process import loading

    with loading():
        from hubbub.app.fork_server import serve

        for module in modules:
            import_module(module)
    return serve(socket.socket(fileno=int(control)))


def run(config: str, *names: str) -> int:
    """Run the agents until SIGTERM and return the exit code."""
    watch_parent()  # before anything slow: the launcher may be gone already
    from hubbub.app.process import configure_logging, loading

    if os.environ.get("HUBBUB_DEBUG"):
        configure_logging(debug=True)
    try:
        with loading():
            from hubbub.app import agents

            job = agents.from_config(Path(config), names, None, None, os.environ)
        agents.run(job)
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # noqa: BLE001  as with every command
        from hubbub.cli.app import failed

        return failed(error)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
