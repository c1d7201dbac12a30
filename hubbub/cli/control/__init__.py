"""People in charge: what they may ask of agents, once for shell, chat and full screen."""
