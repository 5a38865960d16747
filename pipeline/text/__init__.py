"""Reads properties of a text: its language, numbers, formulas and names of persons."""
