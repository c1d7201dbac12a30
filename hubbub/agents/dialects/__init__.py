"""How models call tools: by their endpoint's own means, or by words in their answers."""
