"""What the performance figures of Hubbub are made with: `python -m benchmarks`, or `make bench`.

Every figure is a ratio of two sides measured in one run, in interleaved rounds, with the same load
program. See `benchmarks/README.md` for what each figure means.
"""
