"""What mods add for a person who chats: one implementation for line by line and full screen."""
