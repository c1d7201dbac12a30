"""Who reads the thread finds what is said in it, whoever said it; nobody else does."""

from __future__ import annotations

from itertools import count

from hubbub.client import Client
from tests.interaction.mods.permissions import THREAD, Answer, Entry, ask

_numbers = count(1)


async def said(client: Client) -> str:
    """A word that nobody else says."""
    word = f"zebra{next(_numbers)}"
    await ask(client, "send_text_message", to=THREAD, text=f"a {word} passes")
    return word


def _found(answer: Answer, word: str) -> bool:
    return any(word in hit["snippet"] for hit in answer["hits"])


ENTRIES = {"search": Entry(make=said, args=lambda word: {"query": word}, found=_found)}
