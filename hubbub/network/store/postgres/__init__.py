"""The store on Postgres. Imported only if a network uses it (`hubbub[cluster]`).

store, database, session, link  the store, its owner, a connection, and the connection's thread
mod_tables                      tables of mods
cluster                         the nodes' shared state
transfer                        copies a log from SQLite to Postgres
"""
