"""What an expression is worth: exact values, values with a bound on their error, and whether two are the same."""
