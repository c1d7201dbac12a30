"""What runs on a machine.

network, agents, supervisor     `hubbub up`: a hub, and the processes of its agents
inbound, bridges                programs beside it: webhooks, other chats
node, cluster, gateway          networks on several machines; `dev_cluster` tries them on one
preflight, agent_checks         a config, checked before a start; `import_trial`: its Python
doctor, providers, prompts      a machine, models for a first config, what agents are told
agent_folder                    files of agents that owners make
lifecycle, traces, metrics      what happens, as data, spans, figures
process, running, lifeline      this process, and its children

Imports everything but the commands, the tests' parts and the lab; only commands, the lab and tests
import it.
"""
