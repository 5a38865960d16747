"""The two ways in which the math verifier refuses a text or a value."""


class TooLarge(Exception):
    """A budget was met; the message names it."""


class Unreadable(Exception):
    """The text is no answer that the reader knows."""
