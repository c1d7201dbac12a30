"""One turn: its loop, the calls that it runs, and its record.

loop, driver            the state machine (pure), and what carries out its commands
steps, chat             recorded steps, as messages of a chat
recorder, record_limits the record at the hub; `continuation` resumes where one ended
reservations, outbox    what it may cost, and what it sends
partial, activity       signs of life meanwhile
hooks                   what people's code may see and refuse
"""
