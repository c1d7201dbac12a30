"""One turn: its loop, what it may do, and the record that is kept of it."""
