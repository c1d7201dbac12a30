"""A network's YAML file as checked models.

`loader` reads it (`source`: YAML with places, includes and variables; `paths`) along with the files
of agents that owners create (`agent_files`). `models` and the section modules define the schema,
`checks` the rules across sections. `explain` and `problems` report problems with file, line and the
nearest name. Imports the protocol.
"""
