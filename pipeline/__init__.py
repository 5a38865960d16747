"""Part of truegold."""
