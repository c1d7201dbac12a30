"""Agents of other frameworks as agents of the network: each run is a turn.

guest            the base class of all adapters, and its turn
pydantic_ai      agents of Pydantic AI
openai_agents    agents of the OpenAI Agents SDK
langgraph        graphs of LangGraph, and agents of LangChain
agent_framework  agents of Microsoft's Agent Framework, which AutoGen has become
crewai           agents and crews of CrewAI

Each module needs its framework. No other part of the package imports them.
"""
