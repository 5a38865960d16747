"""From an answer's text to its tree, and back to the less usual trees of the same text.

normal                          one spelling for what is typeset in many
lexer, letters, numerals        tokens
grammar                         one expression or relation
quantities, units, wording      values with units, values that words speak of
conditions, answers             lists of all these, with what is said of their letters
cached, alternatives            readings that are remembered; other readings of ambiguous notation
"""
