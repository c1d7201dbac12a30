"""What many machines cost: measured, computed and simulated, for docs/explanation/scale.md."""
