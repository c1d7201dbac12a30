from langchain.agents import create_agent

poet = create_agent("openai:gpt-5-mini", system_prompt="You write short texts.")
result = poet.invoke({"messages": [("user", "A line about the sea, please.")]})
print(result["messages"][-1].text)
