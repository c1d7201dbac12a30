"""What runs on a machine: a network (`network`, with the processes of its agents: `agents`,
`supervisor`), the program that takes webhooks (`inbound`), and what is said before and meanwhile.

`preflight` and `doctor` look at a config and a machine, `providers` finds models for a first
config, `prompts` is what agents are told, `lifecycle` what happens, as data. Imports everything
but the commands, the tests' parts and the lab; nothing but the commands imports it.
"""
