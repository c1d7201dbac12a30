"""Writes the text of a PDF to standard output. A separate process, because a malicious document can
make pypdf use any amount of time or memory.

    python -I pdf_worker.py FILE CHARACTERS

Exit codes: 0 success, 3 encrypted, anything else failure.
"""

from __future__ import annotations

import logging
import sys

from pypdf import PdfReader

__all__ = []

SECONDS, BYTES = 10, 1_500_000_000
"""Limits on CPU time and memory, on systems that support them."""
ENCRYPTED = 3


def limit() -> None:
    """Let the system end this process if it exceeds the limits."""
    try:
        import resource
    except ImportError:  # Windows: only the timeout of the parent applies
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
