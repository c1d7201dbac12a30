from pathlib import Path

from crewai import Agent
from crewai.tools import tool


@tool
def search(query: str) -> str:
    """Search the handbook for passages."""
    words = set(query.lower().split())
    texts = [path.read_text() for path in Path("handbook").rglob("*.md")]
    passages = [passage for text in texts for passage in text.split("\n## ")]
    found = sorted(passages, key=lambda p: -len(words & set(p.lower().split())))
    return "\n".join(found[:3])


clerk = Agent(
    role="clerk",
    goal="Answer customers.",
    backstory="You answer from the handbook.",
    llm="gpt-5-mini",
    tools=[search],
)
print(clerk.kickoff("How soon are refunds for damaged goods paid?").raw)
