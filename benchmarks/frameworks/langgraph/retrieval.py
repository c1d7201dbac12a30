from pathlib import Path

from langchain.agents import create_agent
from langchain.tools import tool


@tool
def search(query: str) -> list[str]:
    """Search the handbook for passages."""
    words = set(query.lower().split())
    texts = [path.read_text() for path in Path("handbook").rglob("*.md")]
    passages = [passage for text in texts for passage in text.split("\n## ")]
    return sorted(passages, key=lambda p: -len(words & set(p.lower().split())))[:3]


clerk = create_agent(
    "openai:gpt-5-mini", [search], system_prompt="You answer customers from the handbook."
)
question = "How soon are refunds for damaged goods paid?"
print(clerk.invoke({"messages": [("user", question)]})["messages"][-1].text)
