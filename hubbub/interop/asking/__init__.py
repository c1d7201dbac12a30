"""People who ask agents through another protocol, and wait for the answers.

words          what is asked
conversations  which thread it goes on with
question       a question, and what comes of it
asker          one participant: what it asks, and what it hears
"""
