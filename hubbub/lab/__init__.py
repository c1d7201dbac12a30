"""What one uses while building agents, apart from what runs them.

`lint` reads prompts as the linter needs them, `previews` shows them as a model reads them, `cases`
and `prompt_tests` try them again and again (`dry_run`, `expectations`), with results for people and
for CI servers. `networks` runs a whole network in this process, `recordings` answers for its models
and tools. Imports the app and what stands below it; only commands import it, and tests of people's
own.
"""
