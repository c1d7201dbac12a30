"""All texts of a draft: to look at, and to change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from pydantic import JsonValue

from hubbub.protocol.messages import Attachment, Draft

__all__ = ["Change", "Text", "rewritten", "said", "text_alone", "texts"]


class Text(NamedTuple):
    """A text of a draft."""

    text: str
    field: str = ""
    """In JSON content: the name of the field whose value it is."""


Change = Callable[[Text], str]


def said(draft: Draft) -> Iterator[Text]:
    """What the sender says in words of its own: strings of the content with the names of fields,
    and the text that is shown in its place."""
    yield from _strings(draft.content)
    if draft.text_representation is not None:
        yield Text(draft.text_representation)


def text_alone(draft: Draft) -> str | None:
    """The text that is all there is to read in it, as in most messages; None if there is more."""
    alone = draft.text_representation is None and draft.quote is None and not draft.attachments
    return draft.content if alone and isinstance(draft.content, str) else None


def texts(draft: Draft) -> Iterable[Text]:
    """All texts that readers get from it: what is said, what is quoted, and what attachments are
    called, where they are and how their texts begin."""
    alone = text_alone(draft)
    return _all_texts(draft) if alone is None else (Text(alone),)


def _all_texts(draft: Draft) -> Iterator[Text]:
    yield from said(draft)
    if draft.quote is not None:
        yield Text(draft.quote.text)
    for attachment in draft.attachments:
        yield Text(attachment.name)
        yield Text(attachment.media_type)
        yield Text(attachment.uri)
        if attachment.excerpt is not None:
            yield Text(attachment.excerpt)


def _strings(value: JsonValue, field: str = "") -> Iterator[Text]:
    if isinstance(value, str):
        yield Text(value, field)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield Text(key)
            yield from _strings(item, key)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item, field)


def rewritten(draft: Draft, change: Change) -> Draft:
    """The draft with each of its texts changed; the same object if none is."""
    shown, quote = draft.text_representation, draft.quote
    attachments = tuple(_renamed(each, change) for each in draft.attachments)
    quoted = quote and quote.model_copy(update={"text": change(Text(quote.text))})
    made = replace(
        draft,
        content=_rewritten(draft.content, change),
        text_representation=None if shown is None else change(Text(shown)),
        quote=quoted,
        attachments=attachments,
    )
    return draft if made == draft else made


def _renamed(attachment: Attachment, change: Change) -> Attachment:
    made = {name: change(Text(getattr(attachment, name))) for name in ("name", "media_type", "uri")}
    excerpt = attachment.excerpt
    return attachment.model_copy(
        update={**made, "excerpt": None if excerpt is None else change(Text(excerpt))}
    )


def _rewritten(value: JsonValue, change: Change, field: str = "") -> JsonValue:
    if isinstance(value, str):
        return change(Text(value, field))
    if isinstance(value, list):
        return [_rewritten(item, change, field) for item in value]
    if not isinstance(value, dict):
        return value
    made: dict[str, JsonValue] = {}
    for key, item in value.items():
        made[_free(change(Text(key)), made)] = _rewritten(item, change, key)
    return made


def _free(name: str, taken: dict[str, JsonValue]) -> str:
    """The name; with a number if another field has become the same."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name} ({number})"
    return free
