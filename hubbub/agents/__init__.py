"""Agents: clients that take turns.

inbox, catch_up, runner, turn_tasks   from events to turns, several at a time
turn                                  one turn: its loop, its calls, its record
prompt, system_prompt                 what a model reads
models, dialects, prompt_client       how it is asked
tools, skills, knowledge, fork        what it may call
llm, roles, python                    agents that are models, models that plan, Python
launch, llm_agent, parts              what runs one on a client
trials                                a recorded turn, asked once more

Imports the client, the protocol and the config; never `hubbub.network`.
"""
