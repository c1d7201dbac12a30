from hubbub import LlmAgent, Network, tool


@tool
def price(article: str) -> float:
    """Look up the price of an article, in euros."""
    return {"lamp": 24.5, "clock": 40.0}[article]


@tool
def add(amounts: list[float]) -> float:
    """Add amounts up."""
    return sum(amounts)


instruction = "You find out prices for the office."
buyer = LlmAgent(
    "buyer", kind="pipeline", model="gpt-5-mini", instruction=instruction, tools=[price, add]
)
print(Network(buyer).ask_sync("buyer", "What do a lamp and a clock cost together?"))
