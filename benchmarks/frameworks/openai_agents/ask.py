from agents import Agent, Runner

poet = Agent(name="poet", model="gpt-5-mini", instructions="You write short texts.")
print(Runner.run_sync(poet, "A line about the sea, please.").final_output)
