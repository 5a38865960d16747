"""What keeps leaks, copies and one-sidedness out of distilled positives."""
