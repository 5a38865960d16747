"""Pass rates, their estimates, and the lengths of completions."""
