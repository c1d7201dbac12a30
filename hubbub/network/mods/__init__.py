"""The room of the mods: what runs them in the hub, and the door through which they ask it."""
