"""Extensions of the hub: the API of mods, what runs them, and the mods that come with Hubbub.

    api, operation, host              what a mod is, declares, and may ask for
    pipeline, guard                   messages pass the mods, whose code is measured
    loader                            mods by name, with settings and tables
    fields, repository, text_search   what several mods share
    completions                       plain questions to models, of mods and of the hub
    one folder for each mod           `mod` has the class; it imports nothing of the network

It may import `config` and `protocol`; the network imports it.
"""
