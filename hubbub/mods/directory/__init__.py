"""The mod `directory`: who can do what.

mod      operations; what of a card is searched, and who fits a need
schemas  inputs and outputs
"""
