"""The wire, without any I/O: messages, frames, codes, codec, session state table."""
