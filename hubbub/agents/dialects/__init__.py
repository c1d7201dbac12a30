"""How models call tools: natively through their endpoint, or as text in their answers."""
