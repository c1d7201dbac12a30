"""A network's YAML file as checked models.

`loader` reads it (`source`: YAML with places, includes and variables; `paths`) with the files of
agents that owners make (`agent_files`), `models` and the sections beside it say what may stand
there, `checks` what must hold together, `explain` and `problems` say what is wrong: file, line, the
nearest name. Imports the protocol.
"""
