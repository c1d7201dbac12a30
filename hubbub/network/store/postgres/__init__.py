"""The store on Postgres. Nothing here is imported before a network names it (`hubbub[cluster]`).

store, database, session, link  the store, its owner, a connection, and the thread that has it
mod_tables                      tables of mods, translated
cluster                         what nodes show each other there
transfer                        moves a log between SQLite and Postgres
"""
