"""Extensions of the hub: the API of mods, the code that runs them, and the built-in mods.

    api, operation, host              the API of mods: hooks, operations, services of the hub
    pipeline, guard                   run the hooks and measure them
    loader                            finds mods by name, with settings and tables
    fields, repository, text_search   code shared by several mods
    completions                       model requests of mods and the hub
    one folder for each mod           `mod` has the class; it imports nothing of the network

This package can import `config` and `protocol`. The network imports it.
"""
