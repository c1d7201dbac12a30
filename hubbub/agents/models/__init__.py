"""Models: what the loop asks, and adapters to endpoints."""
