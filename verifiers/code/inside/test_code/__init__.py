"""Test code: what it needs, which of its statements are tests, and how they are run and reported."""
