"""Markdown of others in a terminal: rendered, but nothing in it may steer the terminal or the eye.

Raw HTML and images are shown as the text they are, addresses stand beside their links, and control
and bidi characters are visible, also those that only an entity such as `&#8238;` spells. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement
from rich.segment import Segment, Segments
from rich.syntax import Syntax

from hubbub.cli.chat.text import visible

__all__ = ["LANGUAGES", "SafeMarkdown"]

MOST_CODE = 8192
"""Characters of a code block that is highlighted; more is shown plain."""
LANGUAGES = frozenset(
    {"bash", "c", "console", "cpp", "csharp", "css", "diff", "docker", "go", "html", "ini", "java"}
    | {"javascript", "js", "json", "kotlin", "make", "markdown", "php", "py", "python", "ruby"}
    | {"rust", "sh", "sql", "swift", "toml", "ts", "typescript", "xml", "yaml", "yml"}
)
"""Languages that are highlighted. A closed list: whoever writes a message chooses the language,
and some lexers take very long for what was made to take long."""


class LeftHeading(Heading):
    """A heading where the eye begins to read, not in the middle of a frame."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        yield self.text


class PlainCode(CodeBlock):
    """A code block on the ground that the message has."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip()
        known = self.lexer_name.lower() in LANGUAGES and len(code) <= MOST_CODE
        lexer = self.lexer_name if known else "text"
        text = Syntax("", lexer, theme=self.theme, background_color="default").highlight(code)
        text.rstrip()
        text.no_wrap, text.overflow = False, "fold"
        yield text


class SafeMarkdown(Markdown):
    """The text of a message as something rich can render."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": LeftHeading,
        "fence": PlainCode,
        "code_block": PlainCode,
    }

    def __init__(self, text: str, code_theme: str):
        """`code_theme` is one of pygments' styles."""
        super().__init__("", code_theme=code_theme, hyperlinks=False)
        parser = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
        self.parsed = parser.disable("image").parse(visible(text))
        _make_safe(self.parsed)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Without the empty lines that rich puts around lists and quotations."""
        parts = super().__rich_console__(console, options)
        lines = console.render_lines(Segments(_segments(console, options, parts)), options)
        filled = [n for n, line in enumerate(lines) if any(s.text.strip() for s in line)]
        for line in lines[filled[0] : filled[-1] + 1] if filled else ():
            yield from line
            yield Segment.line()


def _segments(
    console: Console, options: ConsoleOptions, parts: Iterable[RenderableType | Segment]
) -> Iterator[Segment]:
    for part in parts:
        if isinstance(part, Segment):
            yield part
        else:
            yield from console.render(part, options)


def _make_safe(tokens: Iterable[Token]) -> None:
    """Entities are resolved by the parser; what they spell is made visible too. A line end is one:
    people mean those that they type."""
    for token in tokens:
        token.content = visible(token.content)
        token.info = visible(token.info)
        if token.type == "softbreak":
            token.type = "hardbreak"
        if "href" in token.attrs:
            token.attrs["href"] = visible(str(token.attrs["href"]))
        _make_safe(token.children or ())
