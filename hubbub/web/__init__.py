"""The page: `static` has its source, JavaScript without a build step.

site    serves its files, and the page at `/join`
bundle  joins modules when a browser first requests them

Imports nothing from Hubbub: the hub gets a `Site`.
"""
