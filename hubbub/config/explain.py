"""pydantic's errors about a config as sentences with the place, the expected value and the nearest
key."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, JsonValue, ValidationError
from pydantic_core import ErrorDetails

from hubbub.config.problems import ConfigProblems, closest, nearest
from hubbub.config.source import Loc, SourceLocation, YamlDocument
from hubbub.errors import ConfigError
from hubbub.protocol.thread_ids import ID_RULE

__all__ = ["as_document", "dotted", "explain", "valid"]

M = TypeVar("M", bound=BaseModel)

_EXPECTED = {
    "string_type": "text",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "list_type": "a list",
    "tuple_type": "a list",
    "set_type": "a list",
    "dict_type": "keys with values",
    "model_type": "keys with values",
    "model_attributes_type": "keys with values",
    "string_pattern_mismatch": ID_RULE,
}
_AROUND_RULE = re.compile(r"^(Input should be|\w+ should have) | after validation, .*$")
"""What pydantic writes before and after what it expects."""
_OTHER_WORDS = {
    "address": ("listen",),
    "description": ("card",),
    "endpoint": ("base_url",),
    "functions": ("tools",),
    "goal": ("instruction",),
    "host": ("listen",),
    "key": ("api_key",),
    "llm": ("model",),
    "llms": ("models",),
    "max_iterations": ("max_steps",),
    "max_turns": ("max_steps",),
    "name": ("model", "card"),
    "participants": ("members", "humans"),
    "people": ("members", "humans"),
    "plugins": ("mods",),
    "port": ("listen",),
    "provider": ("base_url",),
    "role": ("instruction",),
    "rooms": ("channels",),
    "system": ("instruction",),
    "system_message": ("instruction",),
    "system_prompt": ("instruction",),
    "temp": ("temperature",),
    "token": ("api_key", "auth"),
    "topic": ("description",),
    "type": ("kind",),
    "url": ("base_url", "listen"),
    "users": ("members", "humans"),
}
"""Keys by the words that other tools have for them. The first that the place has is meant."""
_BOUNDS = {
    "greater_than": ("gt", "more than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}


def explain(
    error: ValidationError, root: type[BaseModel], document: YamlDocument, at: Loc = ()
) -> list[ConfigError]:
    """One problem for each invalid place.

    `at` is the place of the validated value in the document; `root` is its model.
    """
    errors = _without_consequences(error.errors(include_url=False))
    located = [(_trimmed((*at, *e["loc"]), document), e) for e in errors]
    located.sort(key=lambda pair: tuple(map(str, pair[0])))
    problems: list[ConfigError] = []
    for loc, group in groupby(located, key=lambda pair: pair[0]):
        details = [each for _, each in group]
        if loc in document.broken or _is_outer_branch(loc, details, located):
            continue
        problems += [document.problem(loc, text) for text in _sentences(loc, details, root, at)]
    return problems


def as_document(data: Mapping[str, JsonValue], place: Path) -> YamlDocument:
    """A config from a program, as if read from a file at `place`, which problems name and relative
    paths start from."""
    document = YamlDocument(dict(data))
    _mark(data, (), SourceLocation(place, 0), document.places)
    return document


def _mark(
    value: object, loc: Loc, place: SourceLocation, places: dict[Loc, SourceLocation]
) -> None:
    places[loc] = place
    within = value.items() if isinstance(value, Mapping) else ()
    for key, child in within or (enumerate(value) if isinstance(value, list | tuple) else ()):
        _mark(child, (*loc, key), place, places)


def valid(model: type[M], given: Mapping[str, object], place: str) -> M:
    """A section given by a program, validated. Raises `ConfigProblems`, which name `place`."""
    try:
        return model.model_validate(given)
    except ValidationError as error:
        document = YamlDocument()
        _mark(given, (), SourceLocation(Path(place), 0), document.places)
        raise ConfigProblems(explain(error, model, document)) from error


def dotted(loc: Sequence[str | int]) -> str:
    """`agents.editor.tools[2]`."""
    text = "".join(f"[{part + 1}]" if isinstance(part, int) else f".{part}" for part in loc)
    return text.removeprefix(".") or "the file"


def _without_consequences(errors: Sequence[ErrorDetails]) -> list[ErrorDetails]:
    """The errors without missing keys that are reported as misspelled ones."""
    extra = [e["loc"] for e in errors if e["type"] == "extra_forbidden"]
    return [
        e
        for e in errors
        if e["type"] != "missing"
        or not any(
            loc[:-1] == e["loc"][:-1] and _meant(str(loc[-1]), [str(e["loc"][-1])]) for loc in extra
        )
    ]


def _trimmed(loc: Loc, document: YamlDocument) -> Loc:
    """The path without pydantic's parts for branches of unions and for keys."""
    here: Loc = ()
    for part in loc:
        if (*here, part) in document.places:
            here = (*here, part)
    return here


def _is_outer_branch(
    loc: Loc, details: Sequence[ErrorDetails], located: Sequence[tuple[Loc, ErrorDetails]]
) -> bool:
    """Whether these errors are of other branches of a union whose right branch failed deeper."""
    deeper = any(len(other) > len(loc) and other[: len(loc)] == loc for other, _ in located)
    return deeper and not any(d["type"] in ("missing", "extra_forbidden") for d in details)


def _sentences(
    loc: Loc, details: Sequence[ErrorDetails], root: type[BaseModel], at: Loc
) -> Iterable[str]:
    structural = [d for d in details if d["type"] in ("missing", "extra_forbidden")]
    for each in structural:
        yield _structural(loc, each, root, at)
    if structural:
        return
    if keys := [d for d in details if d["loc"][-1:] == ("[key]",)]:
        expected = " or ".join(dict.fromkeys(map(_expectation, keys)))
        yield f"'{loc[-1]}' is not a valid name in {dotted(loc[:-1])}: expected {expected}"
        return
    if hidden := [d["msg"] for d in details if d["type"] == "hidden"]:
        yield f"{dotted(loc)}: {hidden[0]}"
        return
    custom = [
        d["msg"].removeprefix("Value error, ")  # of pydantic
        for d in details
        if d["type"] in ("size", "span", "value_error")
    ]
    name = dotted(loc)
    given = _quoted(details[0]["input"])
    if custom:
        is_nested = isinstance(details[0]["input"], Mapping | list)
        yield f"{name}: {custom[0]}" if is_nested else f"{name} is {given}: {custom[0]}"
        return
    wanted = list(dict.fromkeys(filter(None, map(_expectation, details))))
    choices = [choice for d in details for choice in _choices(d)]
    value = details[0]["input"]
    hint = nearest(value, choices) if isinstance(value, str) else ""
    hint = hint if hint.startswith("; did") else ""
    yield f"{name} is {given}: expected {' or '.join(wanted)}{hint}"


def _structural(loc: Loc, details: ErrorDetails, root: type[BaseModel], at: Loc) -> str:
    """The sentence about a missing or unknown key."""
    key = str(details["loc"][-1])
    if details["type"] == "missing":
        return f"{dotted(loc)} needs the key '{key}'"
    model = _model_at(root, loc[len(at) : -1])
    keys = _keys(model) if model else []
    meant = _meant(key, keys)
    hint = f"; did you mean '{meant}'?" if meant else nearest(key, keys)
    return f"unknown key '{key}' in {dotted(loc[:-1])}{hint}"


def _meant(key: str, keys: Sequence[str]) -> str | None:
    """The key that an unknown one probably means, if any."""
    words = (known for known in _OTHER_WORDS.get(key, ()) if known in keys)
    return next(words, None) or closest(key, keys)


def _expectation(details: ErrorDetails) -> str:
    kind, context = details["type"], details.get("ctx", {})
    if kind == "literal_error":
        return str(context["expected"])
    if kind in _BOUNDS:
        bound, phrase = _BOUNDS[kind]
        return f"{phrase} {context[bound]:g}"
    return _EXPECTED.get(kind) or _AROUND_RULE.sub("", details["msg"])


def _choices(details: ErrorDetails) -> list[str]:
    if details["type"] != "literal_error":
        return []
    return re.findall(r"'([^']*)'", str(details.get("ctx", {})["expected"]))


def _quoted(value: object) -> str:
    """The value as shown in a message, cut if long."""
    match value:
        case None:
            return "empty"
        case str():
            return f"'{value}'" if len(value) <= 40 else f"'{value[:40]}…'"
        case Mapping():
            return "a map"
        case list():
            return "a list"
        case bool():
            return str(value).lower()
    return str(value)


def _keys(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def _model_at(model: type[BaseModel], loc: Sequence[str | int]) -> type[BaseModel] | None:
    """The model of the map at `loc`."""
    here: object = model
    for part in loc:
        here = _step(here, part)
    optional = get_origin(here) in (Union, UnionType)
    kinds = get_args(here) if optional else (here,)
    kinds = tuple(get_args(k)[0] if get_origin(k) is Annotated else k for k in kinds)
    return next((k for k in kinds if isinstance(k, type) and issubclass(k, BaseModel)), None)


def _step(annotation: object, part: str | int) -> object:
    """The annotation of `annotation[part]`; None outside of models."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        fields = annotation.model_fields.items()
        return next((f.annotation for name, f in fields if part in (name, f.alias)), None)
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _step(args[0], part)
    if origin in (Union, UnionType):
        steps = (_step(a, part) for a in args if a is not NoneType)
        return next(filter(None, steps), None)
    if origin is dict:
        return args[1]
    return args[0] if args and origin is not Literal else None
