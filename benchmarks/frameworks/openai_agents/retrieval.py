from pathlib import Path

from agents import Agent, Runner, function_tool


@function_tool
def search(query: str) -> list[str]:
    """Search the handbook for passages."""
    words = set(query.lower().split())
    texts = [path.read_text() for path in Path("handbook").rglob("*.md")]
    passages = [passage for text in texts for passage in text.split("\n## ")]
    return sorted(passages, key=lambda p: -len(words & set(p.lower().split())))[:3]


instructions = "You answer customers from the handbook."
clerk = Agent(name="clerk", model="gpt-5-mini", instructions=instructions, tools=[search])
print(Runner.run_sync(clerk, "How soon are refunds for damaged goods paid?").final_output)
