"""The wire protocol, without I/O. Imports only basic modules such as `errors`.

messages, operations, turns, control, spending, agents, admin, memory   data, inputs and outputs
frames, codes, frame_errors                                             frames and errors
codec, plain, rules                                                     bytes to models and back
wire, thread_ids                                                        session states; ids
"""
