"""From an answer's text to its tree, and back to the less usual trees of the same text.

`normal` gives what is typeset in many ways one spelling. `lexer`, `letters` and `numerals` make tokens of it,
`grammar` one expression or relation of them. `quantities`, `units` and `wording` read values with units, and values
that words speak of; `conditions` and `answers` read lists of all these, with what is said of their letters. `cached`
remembers readings, and `alternatives` gives the other readings of ambiguous notation.
"""
