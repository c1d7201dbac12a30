"""Budgets: the only gate that refuses a wake.

budgets        the service: checks messages and turns, and reports what is left
policy         decides whether agents may be woken; pure, as are `account`, `daily` and `notices`
account        limits and usage of an interaction and its turns
accounts       loads and saves the accounts of all interactions
turn_accounts  reservations and costs of running turns
daily          daily limits
notices        notices to people, each posted once
"""
