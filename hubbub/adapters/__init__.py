"""Agents of other frameworks as agents of the network: their run is a turn.

guest            what all adapters share: the base of such an agent, and its turn
pydantic_ai      agents of Pydantic AI
openai_agents    agents of the OpenAI Agents SDK
langgraph        graphs of LangGraph, and agents of LangChain
agent_framework  agents of Microsoft's Agent Framework, which AutoGen has become
crewai           agents and crews of CrewAI

Each module needs its framework, and none is imported by another part of the package.
"""
