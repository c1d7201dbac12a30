"""The same tasks as programs of several frameworks."""
