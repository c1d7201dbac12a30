"""What the commands of each group say differently from their operations: words, views of answers,
and what takes more than one call. One module a group; imported when one of its commands is used."""
