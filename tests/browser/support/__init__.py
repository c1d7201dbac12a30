"""What the browser tests share: Chromium, networks, a wire that can be cut, the page."""
