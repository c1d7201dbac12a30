"""What the end-to-end tests share: hub processes, peers that speak by hand, load, broken frames."""
