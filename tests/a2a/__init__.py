"""The A2A project's own compatibility kit against a hub."""
