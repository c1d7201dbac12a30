"""The scripted model speaks Chat Completions; the SDK's default is the Responses API."""

from agents import set_default_openai_api, set_tracing_disabled

set_default_openai_api("chat_completions")
set_tracing_disabled(True)
