"""Which program a response commits to: its code blocks, and what a completion-style stub adds to them."""
