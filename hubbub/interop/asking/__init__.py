"""People who ask agents through another protocol and wait for the answers.

request        a request, independent of the protocol
conversations  the thread that a request continues
question       a question and its answer
uploads        the files of a request, as attachments
asker          the client of a person who asks
"""
