from pathlib import Path

from pydantic_ai import Agent

clerk = Agent("openai-chat:gpt-5-mini", instructions="You answer customers from the handbook.")


@clerk.tool_plain
def search(query: str) -> list[str]:
    """Search the handbook for passages."""
    words = set(query.lower().split())
    texts = [path.read_text() for path in Path("handbook").rglob("*.md")]
    passages = [passage for text in texts for passage in text.split("\n## ")]
    return sorted(passages, key=lambda p: -len(words & set(p.lower().split())))[:3]


print(clerk.run_sync("How soon are refunds for damaged goods paid?").output)
