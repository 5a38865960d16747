"""Reads an answer's text into its tree, and into the less usual trees of the same text.

`normal` gives what is typeset in many ways one spelling: `typesetting` removes what surrounds a formula, `notation`
rewrites other notations, and `phrases`, `spoken_numbers`, `chinese_phrases` and `numbered_parts` rewrite words. `lexer`
makes tokens of the text, `grammar` and `operands` one expression or relation of them. `quantities` and `wording` read
values with units, and values that words speak of; `answers` reads lists of all these, with what is said of their
letters.
"""
