"""Budgets: the only gate that refuses a wake.

budgets        the service: it judges messages and turns, and answers what is left
policy         may these agents be woken? Pure, as are `account`, `daily` and `notices`
account        what an interaction and its turns may use and have used
accounts       those of all interactions, from the store and back to it
turn_accounts  reservations and costs of the turns that run
daily          limits of the day
notices        what people are told, each thing once
"""
