from hubbub import LlmAgent, Network

instruction = "You answer customers from the handbook."
clerk = LlmAgent("clerk", model="gpt-5-mini", instruction=instruction, knowledge=["handbook"])
print(Network(clerk).ask_sync("clerk", "How soon are refunds for damaged goods paid?"))
