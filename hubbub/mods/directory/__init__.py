"""The mod `directory`: finds agents by their capabilities.

mod      operations, and the search of cards
schemas  inputs and outputs
"""
