"""The client of the package `openai` for the endpoint of a model."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import parse_qsl, urlsplit

from hubbub.config.agents import ModelConfig
from hubbub.errors import ConfigError

if TYPE_CHECKING:
    from openai import AsyncOpenAI

__all__ = ["Errors", "http_errors", "open_client"]

Errors: TypeAlias = tuple[type[Exception], ...]


def open_client(config: ModelConfig) -> AsyncOpenAI:
    """A client for the model's endpoint. A query in `base_url` is sent with each request.

    Raises `ConfigError` if the environment names a proxy or certificates that cannot be used.
    """
    import openai  # slow to import: only for agents that have a model

    url = urlsplit(config.base_url)
    try:
        return openai.AsyncOpenAI(
            base_url=url._replace(query="").geturl(),
            default_query=dict(parse_qsl(url.query, keep_blank_values=True)),
            api_key=config.api_key or "none",  # local servers need no key
            timeout=config.timeout,
            max_retries=config.retries,
            # Its own default would be closed after such an error, and report another one. To load
            # all certificate authorities takes a tenth of a second, which plain HTTP needs not.
            http_client=openai.DefaultAsyncHttpxClient(verify=url.scheme != "http"),
        )
    except (ImportError, OSError, ValueError) as exc:
        what = "the variables for proxies (ALL_PROXY, ...) and certificates (SSL_CERT_FILE)"
        reason = str(exc).rstrip(".")
        raise ConfigError(f"no model endpoint can be reached: {reason}; check {what}") from exc


def http_errors(name: str) -> Errors:
    """The class of this name of the HTTP library below `openai`, which does not convert all errors
    that occur while a response is read. Before version 3 it is httpx, which CrewAI needs.
    """
    loaded = filter(None, map(sys.modules.get, ("httpx", "httpx2")))
    return tuple(getattr(library, name) for library in loaded)
