"""The page: `static` has it as it was written, in JavaScript without a build.

site    its files as the hub serves them, and the page at `/join`
bundle  modules and style sheets joined when a browser first asks

Imports nothing of Hubbub: the hub is given a `Site`.
"""
