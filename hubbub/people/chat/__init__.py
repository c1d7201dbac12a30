"""The chat: a person's client line by line, at a terminal or in a pipe. `conversation` joins the
state (`session`), a console (`terminal`, `pipe`) and the hub."""
