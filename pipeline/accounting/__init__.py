"""Where every row of a run went."""
