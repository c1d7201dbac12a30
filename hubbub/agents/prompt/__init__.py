"""What a model is shown of a conversation."""
