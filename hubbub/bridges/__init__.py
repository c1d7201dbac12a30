"""Bridges: a channel of the network and a room of another chat have the same conversation.

chat    the port: what a bridge needs of another chat
bridge  the process: one client for what is said here, one for each person of the other chat
names   what a person of another chat is called here
pairs   which message here is which one there
irc     IRC, one connection for each participant
matrix  Matrix, as an application service
"""
