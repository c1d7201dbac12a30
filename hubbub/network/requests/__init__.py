"""Work that participants ask of each other: requests that end once, and who waits for whom."""
