"""The store on Postgres. Nothing here is imported before a network names it (`hubbub[cluster]`)."""
