"""Near duplicates among short problems: quantities, words, candidate pairs, and the relation of each pair."""
