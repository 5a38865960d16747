"""Parses the text of an answer into a tree.

    normal              the normalised text, with the help of `typesetting` and `notation`
                        and, for words, `phrases`, `spoken_numbers`, `chinese_phrases`, `numbered_parts`
    lexer, lexemes      tokens
    answers             the whole answer: a list or one item, and conditions on its letters
      grammar           an expression or relation: its operators
      operands          ... its operands: names, brackets, functions, environments
      quantities        values with units, days and times (`days_and_times`)
      wording           values stated in words
    other_readings      less usual trees of the same text

`qualifiers` and `chemistry` read directions and substances, which are compared as names.
"""
