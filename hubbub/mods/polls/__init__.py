"""Polls with a question and options."""
