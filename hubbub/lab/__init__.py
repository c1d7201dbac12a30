"""Tools for developing agents, separate from the code that runs them.

`lint` prepares prompts for the linter, and `previews` shows them as a model reads them. `cases` and
`prompt_tests` test them repeatedly (`dry_run`, `expectations`), with reports for people and CI
servers. `networks` runs a whole network in this process, `messages` are those that it sends, and
`recordings` replays its models and tools.
Imports the app and the layers below; imported only by commands, and by users' own tests.
"""
