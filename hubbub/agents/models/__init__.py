"""Models: the interface that the loop uses, and adapters to endpoints."""
