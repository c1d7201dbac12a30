from crewai import Agent

poet = Agent(role="poet", goal="Write.", backstory="You write short texts.", llm="gpt-5-mini")
print(poet.kickoff("A line about the sea, please.").raw)
