"""Whether what a program printed or returned is what was expected."""
