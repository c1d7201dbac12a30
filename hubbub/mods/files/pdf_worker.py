"""The text of one PDF, on standard output: a program of its own, because pypdf can be kept busy or
made to need any amount of memory by a document that is made so.

    python -I pdf_worker.py FILE CHARACTERS

Exit codes: 0 read, 3 encrypted. Anything else: it could not be read.
"""

from __future__ import annotations

import logging
import sys

from pypdf import PdfReader

__all__ = []

SECONDS, BYTES = 10, 1_500_000_000
"""Of the processor and of memory, where the system knows such limits."""
ENCRYPTED = 3


def limit() -> None:
    """From here on the system ends this process when it takes too much."""
    try:
        import resource
    except ImportError:  # Windows: only the time limit of who waits
        return
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))


def main(path: str, characters: int) -> int:
    logging.disable()
    limit()
    reader = PdfReader(path)
    if reader.is_encrypted and not reader.decrypt(""):
        return ENCRYPTED
    for page in reader.pages:
        text = page.extract_text()[: characters + 1]
        characters -= len(text)
        sys.stdout.buffer.write(f"{text}\n".encode(errors="replace"))
        if characters < 0:
            break
    sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
