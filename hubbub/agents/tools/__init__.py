"""Tools: what a model may call.

base, function, hub, ask_agent             kinds of tools; `mcp` has those of MCP servers
standard_tools, tidy_steps                 finish, ask, decline, plan; shorter steps
registry, assembly, tool_chooser           which of them an agent has, and is shown
toolbox, call_runner                       run the calls of a step
schema, validation, tool_names             arguments and names, checked
policy, approval                           whether a call may run; `sandbox`: with few permissions
results                                    how much of a result is shown
"""
