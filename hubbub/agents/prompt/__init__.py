"""Building prompts: the system message, the conversation, and the budget of the context window."""
