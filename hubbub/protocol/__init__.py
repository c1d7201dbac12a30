"""The wire, without any I/O. Imports only what stands beside it, such as `errors`.

messages, operations, turns, control, spending, agents, admin, memory   what is sent and asked
frames, codes, frame_errors                                             what travels, and what fails
codec, plain, rules                                                     bytes to models and back
wire, thread_ids                                                        states of a session; ids
"""
