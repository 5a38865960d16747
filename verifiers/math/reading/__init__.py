r"""Parses the text of an answer into a tree: `\frac12` becomes the number 1/2.

    Module              Reads
    normal              the text, which it normalises with `typesetting`, `notation`, `phrases`, `chinese_phrases`
                        and `numbered_parts`
    lexer, lexemes      tokens
    answers             the whole answer: a list or one item, and conditions on its letters
      grammar           the operators of an expression or relation
      operands          the operands: names, brackets, functions, environments
      quantities        values with units
      days_and_times    days and times
      wording           values stated in words
    other_readings      less usual trees of the same text

`qualifiers` and `chemistry` read directions and substances, which are compared as names.
"""
