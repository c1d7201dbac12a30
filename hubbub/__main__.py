"""`python -m hubbub` runs the command `hubbub`."""

from __future__ import annotations

from hubbub.cli import main

__all__: list[str] = []

if __name__ == "__main__":
    main()
