"""The processes of a network on a machine.

network, agents, supervisor     `hubbub up`: a hub, and the processes of its agents
inbound, bridges                companion processes: webhooks, other chats
node, cluster, gateway          networks on several machines; `dev_cluster` runs a cluster on one
preflight, agent_checks         checks of a config before a start; `import_trial`: its Python code
doctor, providers, prompts      checks of a machine, available models, prompts of agents
agent_folder                    files of agents that owners create
lifecycle, traces, metrics      events as data, OpenTelemetry spans, Prometheus metrics
process, running, lifeline      this process and its children

Imports everything except the commands, the test support and the lab; only those and tests import
it.
"""
