"""What agents may spend: accounts of interactions and days, who is let wake whom, leases."""
