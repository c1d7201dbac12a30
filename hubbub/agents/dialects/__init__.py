"""How models call tools: natively through their endpoint, or as text in their answers.

base, text_dialect  what a dialect is, and those that are text
final_output        one JSON object for each step
tool_call           a line for each call
scan                finds JSON in what a model has written
"""
