"""OpenAI's vocabularies, shipped with Hubbub, so that tokens are counted offline.

`scripts/vocabularies.py` fetches the files; the README beside them states their license. Loading
one takes a third of a second and 80 MB of memory; it is done once in a process, and only where a
context window is known.
"""

from __future__ import annotations

import hashlib
import lzma
import re
from binascii import a2b_base64
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Literal

from hubbub.errors import ConfigError

if TYPE_CHECKING:
    from tiktoken import Encoding


__all__ = ["ENCODINGS", "FOLDER", "EncodingName", "encoding_of", "load_encoding"]

EncodingName = Literal["o200k_base", "cl100k_base"]
FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class EncodingSpec:
    """The pattern that splits text before the vocabulary is applied, and a checksum."""

    pieces: str
    sha256: str
    """Of the uncompressed file, as OpenAI publishes it."""


_ENDINGS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_CAPITALS, _SMALL = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
ENCODINGS: dict[EncodingName, EncodingSpec] = {
    "o200k_base": EncodingSpec(
        "|".join(
            (
                rf"[^\r\n\p{{L}}\p{{N}}]?[{_CAPITALS}]*[{_SMALL}]+{_ENDINGS}",
                rf"[^\r\n\p{{L}}\p{{N}}]?[{_CAPITALS}]+[{_SMALL}]*{_ENDINGS}",
                r"\p{N}{1,3}",
                r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
                r"\s*[\r\n]+",
                r"\s+(?!\S)",
                r"\s+",
            )
        ),
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
    "cl100k_base": EncodingSpec(
        "|".join(
            (
                r"'(?i:[sdmt]|ll|ve|re)",
                r"[^\r\n\p{L}\p{N}]?+\p{L}++",
                r"\p{N}{1,3}+",
                r" ?[^\s\p{L}\p{N}]++[\r\n]*+",
                r"\s++$",
                r"\s*[\r\n]",
                r"\s+(?!\S)",
                r"\s",
            )
        ),
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
}
_BY_NAME: tuple[tuple[re.Pattern[str], EncodingName], ...] = (
    (re.compile(r"(chat)?gpt-(4o|4\.1|4\.5|5|oss)\b"), "o200k_base"),
    (re.compile(r"o[134](-|$)"), "o200k_base"),
    (re.compile(r"gpt-(4|3\.5|35)(-|$)"), "cl100k_base"),
)
_LOADING = Lock()


def encoding_of(model: str) -> EncodingName | None:
    """The encoding of a model by its name at an endpoint; None if it is not known to be OpenAI's.

    Prefixes of the name (`openai/gpt-4o`, `ft:gpt-4o-mini:us::x`) are ignored.
    """
    name = model.lower().rpartition("/")[2].removeprefix("ft:")
    return next((encoding for pattern, encoding in _BY_NAME if pattern.match(name)), None)


def load_encoding(name: EncodingName) -> Encoding:
    """The encoding, loaded on first use. Thread-safe.

    Raises `ConfigError` when the file is damaged.
    """
    with _LOADING:
        return _loaded(name)


@cache
def _loaded(name: EncodingName) -> Encoding:
    from tiktoken import Encoding  # imported only where tokens are counted

    encoding, path = ENCODINGS[name], FOLDER / f"{name}.tiktoken.xz"
    try:
        raw = lzma.decompress(path.read_bytes())
    except (OSError, lzma.LZMAError) as exc:
        raise ConfigError(f"the vocabulary cannot be read ({exc}); {_AGAIN}", path) from exc
    if hashlib.sha256(raw).hexdigest() != encoding.sha256:
        raise ConfigError(f"the vocabulary is not what it should be; {_AGAIN}", path)
    words = raw.split()  # of each line two: a token, and its rank
    ranks = dict(zip(map(a2b_base64, words[::2]), map(int, words[1::2]), strict=True))
    return Encoding(name, pat_str=encoding.pieces, mergeable_ranks=ranks, special_tokens={})


_AGAIN = "install hubbub again"
