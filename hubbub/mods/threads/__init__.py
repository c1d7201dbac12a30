"""The mod `threads`: titles, what is resolved, who follows and mutes, and quotes that are true."""
