"""Validation of file names, and detection of media types. Pure.

The name and type that a sender gives are claims, and the bytes decide. A picture of a different
kind than claimed gets its true type. A program or text that claims to be a picture or document is
refused.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Collection

from hubbub.errors import OperationError
from hubbub.mods.operation import bad_request
from hubbub.protocol.codes import ErrorCode

__all__ = [
    "HEAD",
    "LONGEST",
    "MEDIA_TYPE",
    "OCTETS",
    "OFFICE",
    "OPEN_DOCUMENT",
    "TYPE_RULE",
    "checked_name",
    "is_accepted",
    "is_text_type",
    "suffix_of",
    "true_type",
]

LONGEST = 255
"""Maximum length of a name in bytes of UTF-8, as in common file systems."""

_DEVICES = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])", re.IGNORECASE)
"""Names of devices on Windows, with any suffix."""
_FORBIDDEN = frozenset('/\\:*?"<>|')
_JOINERS = frozenset("\u200c\u200d")
"""Invisible, but required in some words and emoji."""
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories of characters that are invisible or change the direction of text."""


def checked_name(name: str) -> str:
    """The name in composed form (NFC). Raises `OperationError` if it is not safe."""
    problem = _problem(name)
    if problem is not None:
        raise bad_request(f"name: {problem}")
    return unicodedata.normalize("NFC", name)


def _problem(name: str) -> str | None:
    if len(name) > LONGEST or len(name.encode(errors="replace")) > LONGEST:
        return f"is longer than {LONGEST} bytes"
    for character in name:
        if character not in _JOINERS and unicodedata.category(character) in _UNSEEN:
            return f"the character U+{ord(character):04X} is invisible or hides others"
    # Characters that other programs normalize to separators are treated as separators.
    plain = unicodedata.normalize("NFKC", name)
    if plain.strip(". ") == "":
        return "has only dots and spaces"
    for character in plain:
        if character in _FORBIDDEN:
            return f"must not have a path or the character {character!r}"
    if name != name.strip() or plain != plain.strip() or plain.endswith("."):
        return "must not start or end with a space, or end with a dot"
    if _DEVICES.fullmatch(plain.partition(".")[0].rstrip()):
        return f"{plain[:20]!r} is the name of a device on some systems; use a different one"
    return None


def suffix_of(name: str) -> str:
    """The suffix of a name in lower case, such as `.md`, or an empty string."""
    stem, dot, suffix = name.rpartition(".")
    return f".{suffix.lower()}" if dot and stem else ""


HEAD = 65_536
"""Bytes at the start of a file used to detect its type."""
OCTETS = "application/octet-stream"
MEDIA_TYPE = r"^[a-z0-9][a-z0-9!#$&^_.+-]{0,62}/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}$"
TYPE_RULE = r"^(\.[a-z0-9][a-z0-9.+_-]{0,30}|[a-z0-9.+_-]{1,63}/(\*|[a-z0-9!#$&^_.+-]{1,127}))$"
"""Pattern for a type in the settings: `.md`, `image/*`, `application/pdf`."""

OFFICE = "application/vnd.openxmlformats-officedocument"
OPEN_DOCUMENT = "application/vnd.oasis.opendocument"

_BY_SUFFIX = {
    ".txt": "text/plain", ".log": "text/plain", ".md": "text/markdown",
    ".markdown": "text/markdown", ".rst": "text/x-rst", ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
    ".html": "text/html", ".htm": "text/html", ".xhtml": "application/xhtml+xml",
    ".css": "text/css", ".js": "text/javascript", ".mjs": "text/javascript",
    ".ts": "text/x-typescript", ".jsx": "text/javascript", ".tsx": "text/x-typescript",
    ".json": "application/json", ".jsonl": "application/jsonl", ".ipynb": "application/json",
    ".xml": "application/xml", ".yaml": "application/yaml", ".yml": "application/yaml",
    ".toml": "application/toml", ".ini": "text/plain", ".cfg": "text/plain",
    ".sql": "application/sql",
    ".py": "text/x-python", ".sh": "text/x-shellscript", ".c": "text/x-c", ".h": "text/x-c",
    ".cpp": "text/x-c++", ".java": "text/x-java", ".go": "text/x-go", ".rs": "text/x-rust",
    ".rb": "text/x-ruby", ".php": "text/x-php", ".diff": "text/x-diff", ".patch": "text/x-diff",
    ".tex": "text/x-tex", ".svg": "image/svg+xml", ".ics": "text/calendar", ".vcf": "text/vcard",
    ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif",
    ".webp": "image/webp", ".bmp": "image/bmp", ".tif": "image/tiff", ".tiff": "image/tiff",
    ".ico": "image/x-icon", ".avif": "image/avif", ".heic": "image/heic", ".pdf": "application/pdf",
    ".zip": "application/zip", ".gz": "application/gzip", ".tgz": "application/gzip",
    ".bz2": "application/x-bzip2", ".xz": "application/x-xz", ".zst": "application/zstd",
    ".7z": "application/x-7z-compressed", ".rar": "application/vnd.rar",
    ".tar": "application/x-tar",
    ".docx": f"{OFFICE}.wordprocessingml.document", ".xlsx": f"{OFFICE}.spreadsheetml.sheet",
    ".pptx": f"{OFFICE}.presentationml.presentation", ".odt": f"{OPEN_DOCUMENT}.text",
    ".ods": f"{OPEN_DOCUMENT}.spreadsheet", ".odp": f"{OPEN_DOCUMENT}.presentation",
    ".epub": "application/epub+zip", ".jar": "application/java-archive",
    ".doc": "application/msword", ".xls": "application/vnd.ms-excel",
    ".ppt": "application/vnd.ms-powerpoint", ".mp3": "audio/mpeg", ".wav": "audio/wav",
    ".ogg": "audio/ogg", ".flac": "audio/flac", ".m4a": "audio/mp4", ".mp4": "video/mp4",
    ".mov": "video/quicktime", ".webm": "video/webm", ".mkv": "video/x-matroska",
    ".sqlite": "application/vnd.sqlite3", ".db": "application/vnd.sqlite3",
    ".wasm": "application/wasm", ".woff": "font/woff", ".woff2": "font/woff2",
    ".exe": "application/vnd.microsoft.portable-executable",
    ".dll": "application/vnd.microsoft.portable-executable",
}  # fmt: skip

_ZIPPED = frozenset(
    {"application/zip", "application/epub+zip", "application/java-archive"}
    | {kind for kind in _BY_SUFFIX.values() if kind.startswith((OFFICE, OPEN_DOCUMENT))}
)
_MP4 = frozenset(
    {"video/mp4", "audio/mp4", "audio/x-m4a", "video/quicktime", "image/avif", "image/heic"}
)
_OLE = frozenset(
    {"application/msword", "application/vnd.ms-excel", "application/vnd.ms-powerpoint"}
)

_SIGNS: tuple[tuple[int, bytes, str, Collection[str]], ...] = (
    # offset, bytes, media type, other types with the same bytes
    (0, b"\x89PNG\r\n\x1a\n", "image/png", ()),
    (0, b"\xff\xd8\xff", "image/jpeg", ("image/jpg",)),
    (0, b"GIF87a", "image/gif", ()),
    (0, b"GIF89a", "image/gif", ()),
    (8, b"WEBP", "image/webp", ()),
    (8, b"WAVE", "audio/wav", ("audio/x-wav", "audio/vnd.wave")),
    (0, b"II*\x00", "image/tiff", ()),
    (0, b"MM\x00*", "image/tiff", ()),
    (0, b"\x00\x00\x01\x00", "image/x-icon", ("image/vnd.microsoft.icon",)),
    (0, b"%PDF-", "application/pdf", ()),
    (0, b"PK\x03\x04", "application/zip", _ZIPPED),
    (0, b"PK\x05\x06", "application/zip", _ZIPPED),
    (0, b"\x1f\x8b", "application/gzip", ("application/x-gzip",)),
    (0, b"BZh", "application/x-bzip2", ("application/x-bzip",)),
    (0, b"\xfd7zXZ\x00", "application/x-xz", ()),
    (0, b"\x28\xb5\x2f\xfd", "application/zstd", ()),
    (0, b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed", ()),
    (0, b"Rar!\x1a\x07", "application/vnd.rar", ("application/x-rar-compressed",)),
    (257, b"ustar", "application/x-tar", ()),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage", _OLE),
    (4, b"ftyp", "video/mp4", _MP4),
    (0, b"ID3", "audio/mpeg", ("audio/mp3",)),
    (0, b"\xff\xfb", "audio/mpeg", ("audio/mp3",)),
    (0, b"OggS", "audio/ogg", ("video/ogg", "application/ogg")),
    (0, b"fLaC", "audio/flac", ("audio/x-flac",)),
    (0, b"\x1aE\xdf\xa3", "video/webm", ("audio/webm", "video/x-matroska")),
    (0, b"SQLite format 3\x00", "application/vnd.sqlite3", ("application/x-sqlite3",)),
    (0, b"wOFF", "font/woff", ()),
    (0, b"wOF2", "font/woff2", ()),
    (0, b"BM", "image/bmp", ("image/x-ms-bmp",)),
)
_PROGRAMS: tuple[tuple[bytes, str], ...] = (
    (b"\x7fELF", "application/x-elf"),
    (b"MZ", "application/vnd.microsoft.portable-executable"),
    (b"\xfe\xed\xfa\xce", "application/x-mach-binary"),
    (b"\xfe\xed\xfa\xcf", "application/x-mach-binary"),
    (b"\xce\xfa\xed\xfe", "application/x-mach-binary"),
    (b"\xcf\xfa\xed\xfe", "application/x-mach-binary"),
    (b"\xca\xfe\xba\xbe", "application/java-vm"),
    (b"\x00asm", "application/wasm"),
    (b"dex\n", "application/vnd.android.dex"),
)
_PROGRAM_TYPES = frozenset(
    {OCTETS, "application/x-msdownload", "application/x-executable", "application/x-sharedlib"}
    | {kind for _, kind in _PROGRAMS}
)
_SIGNED = frozenset({kind for _, _, kind, _ in _SIGNS}).union(*(also for *_, also in _SIGNS))
"""Types with a signature at the start of the file."""
_TEXTUAL = frozenset(
    f"application/{name}"
    for name in ("json", "jsonl", "xml", "yaml", "x-yaml", "toml", "sql", "javascript", "x-sh",
                 "x-ndjson", "graphql", "x-httpd-php")
)  # fmt: skip
_C0 = re.compile(rb"[\x00-\x06\x0e-\x1a\x1c-\x1f\x7f]")


def is_text_type(media_type: str) -> bool:
    """Whether files of the type are plain text."""
    structured = media_type.endswith(("+json", "+xml", "+yaml"))
    return media_type.startswith("text/") or media_type in _TEXTUAL or structured


def true_type(name: str, claimed: str | None, head: bytes) -> str:
    """The media type of a file that starts with `head`. Raises `OperationError` if its content does
    not match its claimed type."""
    claim = _BY_SUFFIX.get(suffix_of(name)) or claimed
    program = next((kind for sign, kind in _PROGRAMS if _is_program(head, sign)), None)
    if program is not None:
        if claim is None or claim in _PROGRAM_TYPES:
            return program
        raise _mismatch(name, claim, "a program")
    signs = [(kind, also) for at, sign, kind, also in _SIGNS if head[at : at + len(sign)] == sign]
    if claim is not None and any(claim == kind or claim in also for kind, also in signs):
        return claim
    if _is_text(head):
        if claim in _SIGNED or claim in _PROGRAM_TYPES - {OCTETS}:
            raise _mismatch(name, claim or "", "HTML" if _HTML.match(head) else "text")
        return "text/plain" if claim is None or claim == OCTETS else claim
    if signs:
        return signs[0][0]
    is_plausible = claim is None or claim in _SIGNED or is_text_type(claim)
    return OCTETS if is_plausible or claim is None else claim


_HTML = re.compile(rb"\s*<(!doctype\s+html|html|head|body|script|svg|iframe)\b", re.IGNORECASE)


def _is_program(head: bytes, sign: bytes) -> bool:
    # A text can start with the same two letters, but a program has zero bytes early.
    return head.startswith(sign) and (len(sign) > 2 or b"\x00" in head[:256])


def _is_text(head: bytes) -> bool:
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return True
    if _C0.search(head):
        return False
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        # An older encoding, if most bytes are ASCII.
        return sum(byte < 128 for byte in head) >= 0.7 * len(head)
    return True


def _mismatch(name: str, claim: str, content: str) -> OperationError:
    return OperationError(
        ErrorCode.REJECTED,
        f"files: the content of {name!r} is {content}, not {claim}; correct its name or type",
    )


def is_accepted(rules: Collection[str], name: str, media_type: str) -> bool:
    """Whether the settings accept the file. Without rules, all files are accepted."""
    if not rules:
        return True
    suffix = suffix_of(name)
    by_name = _BY_SUFFIX.get(suffix)
    if suffix in rules and by_name in (None, media_type):
        return True
    return media_type in rules or f"{media_type.partition('/')[0]}/*" in rules
