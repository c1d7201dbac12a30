"""The process of agents that `hubbub up` keeps running: `hubbub agents run` of its network's YAML.

    python -m hubbub.cli.agent_process hubbub.yaml clerk

Nobody types it, so none of the commands is loaded: an agent is there in half the time.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from hubbub.app.lifeline import hold_on

__all__ = ["main"]


def main(config: str, *names: str) -> int:
    """Run the agents until SIGTERM; returns the exit code."""
    hold_on()  # before anything that takes time: the launcher may be gone already
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
