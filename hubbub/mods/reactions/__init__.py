"""The mod `reactions`: an emoji under a message, in place of a message (`mod`, `schemas`)."""
