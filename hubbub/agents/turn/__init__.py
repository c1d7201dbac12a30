"""One turn: its loop, the calls that it runs, and its record."""
