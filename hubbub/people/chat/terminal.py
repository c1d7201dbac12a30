"""A terminal console: a line editor that stays intact while messages arrive above it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import ColorDepth, Output
from prompt_toolkit.renderer import print_formatted_text
from prompt_toolkit.styles import Style

from hubbub.people.chat.console import STYLES, Fragments, Status, render
from hubbub.people.shown import Line

__all__ = ["TerminalConsole"]

REFRESH_S = 1.0
"""Seconds between redraws: activities expire, retries count down."""


class TerminalConsole:
    """prompt_toolkit's line editor: completion, history, a status line below."""

    patient = False

    def __init__(
        self,
        input: Input | None = None,
        output: Output | None = None,
    ):
        """`input` and `output` replace this process's own terminal."""
        self._input, self._output = input, output
        self._style = Style.from_dict(STYLES)
        self._depth = ColorDepth.DEPTH_1_BIT if os.environ.get("NO_COLOR") else None

    def start(self, status: Status) -> None:
        self._status = status
        self._prompt: PromptSession[str] = PromptSession(
            message=lambda: FormattedText([("class:prompt", status.prompt)]),
            bottom_toolbar=self._toolbar,
            completer=ChatCompleter(status),
            complete_while_typing=True,
            erase_when_done=True,
            enable_suspend=True,
            key_bindings=_keys(),
            style=self._style,
            color_depth=self._depth,
            refresh_interval=REFRESH_S,
            input=self._input,
            output=self._output,
        )

    async def read(self) -> str | None:
        try:
            return await self._prompt.prompt_async()
        except (EOFError, KeyboardInterrupt):
            return None

    def refresh(self) -> None:
        self._prompt.app.invalidate()

    def show(self, lines: Sequence[Line]) -> None:
        width = shutil.get_terminal_size().columns
        fragments: Fragments = []
        for line in lines:
            fragments += [*render(line, width), ("", "\n")]
        app = self._prompt.app
        if not app.is_running:
            self._print(fragments)
            return
        # Like prompt_toolkit's `run_in_terminal`, but without leaving raw mode: the terminal's
        # line discipline would swallow a key pressed at that moment.
        app.renderer.erase()
        self._print(fragments)
        app.renderer.reset()
        app.renderer.request_absolute_cursor_position()
        app.invalidate()

    def _print(self, fragments: Fragments) -> None:
        text = FormattedText(fragments)
        print_formatted_text(self._prompt.app.output, text, self._style, color_depth=self._depth)

    def _toolbar(self) -> FormattedText:
        status = self._status
        fragments: Fragments = [("", f"{status.network} as {status.session.me}")]
        for kind, text in status.notices():
            style = "" if kind == "quiet" else f"class:toolbar.{kind}"
            fragments += [("", "  ·  "), (style, text)]
        return FormattedText(fragments)


class ChatCompleter(Completer):
    """Adapts the chat's completions to prompt_toolkit."""

    def __init__(self, status: Status):
        self._status = status

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        # The next word needs a space, unless one follows already.
        space = "" if document.text_after_cursor.startswith(" ") else " "
        for candidate in self._status.candidates(document.text_before_cursor):
            yield Completion(
                candidate.text + (space if candidate.last else ""),
                start_position=-candidate.replaces,
                display=candidate.text,
                display_meta=candidate.about,
            )


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("c-c")
    def _(event: KeyPressEvent) -> None:
        """Discard the line; on an empty line, leave."""
        buffer = event.app.current_buffer
        if buffer.text:
            buffer.reset()
        else:
            event.app.exit(exception=KeyboardInterrupt)

    return keys
