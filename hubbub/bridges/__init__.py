"""Bridges between channels of the network and rooms of other chats.

chat    the port: the interface of another chat
bridge  the process: one client that observes, and one for each person of the other chat
pairs   maps message ids between the network and the other chat
irc     IRC, with one connection per participant
matrix  Matrix, as an application service
"""
