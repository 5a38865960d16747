"""Near duplicates among short problems: quantities, words, candidate pairs, and what two problems are to each other."""
