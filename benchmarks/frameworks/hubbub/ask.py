from hubbub import LlmAgent, Network

poet = LlmAgent("poet", model="gpt-5-mini", instruction="You write short texts.")
print(Network(poet).ask_sync("poet", "A line about the sea, please."))
