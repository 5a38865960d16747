"""Finds near duplicates among short problems: copies, rewordings, and instances of one template."""
