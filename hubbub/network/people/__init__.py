"""People in charge at the hub: what is stopped, who speaks for whom, what waits for a decision."""
