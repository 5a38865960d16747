"""Says what a text is: its language, its numbers, its formulas, its persons. It gives no verdict."""
