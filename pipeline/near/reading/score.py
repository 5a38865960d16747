"""How likely two texts that have been read are the same problem, from what differs between them: a logistic score.

    "the area of the triangle" / "the height of the triangle"    a term that is asked for was exchanged
    "Find $x$" / "Find $y$"                                      a symbol that is asked for was exchanged
    "distinguishable balls" / "indistinguishable balls"          two terms of one family

1. Near copies, which have most of their words in common, are the same problem when they have the same clauses, in any
   order. Equal golds excuse one word exchanged for another.
2. Other texts are judged by WEIGHTS, and by CONFLICT_WEIGHTS where golds differ, which are of log-odds for each column
   of `columns`. Terms weigh more in exercises, which are short and have few words but terms, than in stories
   (`exercise` is 1 for a text without words, 0 from STORY_WORDS on).

The weights were fitted by logistic regression (L2, signs fixed) on the development half of: rewordings by language
models, rewordings of competition problems, pairs that persons read, edited and renumbered variants, and pairs of the
same corpus whose golds differ (`docs/decisions.md`). The weight of `directions_differ` is a rule and was not fitted.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from truegold.pipeline.near.arrays import Floats, Ints, Marks
from truegold.pipeline.near.compare import Measures
from truegold.pipeline.near.reading.differences import Differences

STORY_WORDS = 20
"""A text of so many words is a story."""
COPY_SCORE = np.float32(4)
"""The log-odds of near copies that are the same problem."""
OTHER_SCORE = np.float32(-6)
"""The log-odds of near copies that are not."""
EXCUSED_WORDS = 2
"""Words that only one of two near copies has, which equal golds can excuse: one exchanged for another."""

WEIGHTS = {
    "story": 0.45,
    "wordy": 1.87,
    "order": 0.86,
    "telling": 0.90,
    "numbers_exchanged": -1.27,
    "numbers_added": -1.23,
    "symbols_exchanged": -0.70,
    "formulas_exchanged": -4.38,
    "names_exchanged": -4.44,
    "terms_exchanged": -0.94,
    "terms_exchanged*exercise": -0.41,
    "terms_added*exercise": -1.38,
    "terms_contrasted*exercise": -0.69,
    "extremes_differ*exercise": -1.85,
    "everyday_exchanged": -0.32,
    "everyday_added": -0.31,
    "asked_symbols_exchanged": -1.21,
    "asked_terms_exchanged": -1.28,
    "asked_terms_exchanged*exercise": -2.24,
    "asked_given*exercise": -1.60,
    "words_exchanged*exercise": -0.14,
    "words_added": -0.08,
    "drawing_differs": -4.82,
    "units_differ": -2.92,
    "directions_differ": -4.0,
}
BIAS = -1.09
CONFLICT_WEIGHTS = {
    **WEIGHTS,
    "story": 0.37,
    "wordy": 0.08,
    "order": 0.93,
    "telling": 0.74,
    "numbers_exchanged": -0.92,
    "numbers_added": -1.57,
    "symbols_exchanged": -1.21,
    "terms_exchanged": -0.55,
    "terms_exchanged*exercise": -1.17,
    "terms_added*exercise": -1.94,
    "terms_contrasted*exercise": -1.73,
    "extremes_differ*exercise": -0.97,
    "everyday_exchanged": -0.62,
    "everyday_added": 0.0,
    "asked_symbols_exchanged": -2.52,
    "asked_terms_exchanged": 0.0,
    "asked_terms_exchanged*exercise": -0.27,
    "asked_given*exercise": -0.84,
    "words_exchanged*exercise": -0.05,
}
"""The weights for pairs whose golds differ, which are nearly all siblings: fitted on planted rewordings against pairs
of one corpus whose golds differ. Differences that are too rare there to be fitted keep their weights."""
CONFLICT_BIAS = -1.29


def columns(differences: Sequence[Differences], measures: Measures, story: Floats) -> dict[str, Floats]:
    """Return what the score is made of, a column for each weight; `story` is `relation.same_story_score`."""

    def count(name: str, most: int) -> Floats:
        values: Floats = np.fromiter((getattr(each, name) for each in differences), np.float32, len(differences))
        return np.minimum(values, np.float32(most))

    in_story = count("words", STORY_WORDS) / np.float32(STORY_WORDS)
    exercise: Floats = np.float32(1) - in_story
    asked_terms, terms = count("asked_terms_exchanged", 2), count("terms_exchanged", 3)
    return {
        "story": np.clip(story, -4, 8),
        "wordy": in_story,
        "order": measures.order,
        "telling": np.minimum(measures.telling, 3),
        "numbers_exchanged": count("numbers_exchanged", 2),
        "numbers_added": count("numbers_added", 3),
        "symbols_exchanged": count("symbols_exchanged", 2),
        "formulas_exchanged": count("formulas_exchanged", 2),
        "names_exchanged": count("names_exchanged", 1),
        "terms_exchanged": terms,
        "terms_exchanged*exercise": terms * exercise,
        "terms_added*exercise": count("terms_added", 3) * exercise,
        "terms_contrasted*exercise": count("terms_contrasted", 2) * exercise,
        "extremes_differ*exercise": count("extremes_differ", 1) * exercise,
        "everyday_exchanged": count("everyday_exchanged", 2),
        "everyday_added": count("everyday_added", 3),
        "asked_symbols_exchanged": count("asked_symbols_exchanged", 1),
        "asked_terms_exchanged": asked_terms,
        "asked_terms_exchanged*exercise": asked_terms * exercise,
        "asked_given*exercise": count("asked_given", 1) * exercise,
        "words_exchanged*exercise": count("words_exchanged", 4) * exercise,
        "words_added": count("words_added", 6),
        "drawing_differs": count("drawing_differs", 1),
        "units_differ": count("units_differ", 1),
        "directions_differ": count("directions_differ", 1),
    }


def score_stories(differences: Sequence[Differences], measures: Measures, story: Floats, golds_differ: Marks) -> Floats:
    """Return the log-odds of pairs that are no near copies; `golds_differ` marks those with other weights."""
    score = np.where(golds_differ, np.float32(CONFLICT_BIAS), np.float32(BIAS))
    for name, column in columns(differences, measures, story).items():
        score += np.where(golds_differ, np.float32(CONFLICT_WEIGHTS[name]), np.float32(WEIGHTS[name])) * column
    return score


def score_copies(changed_words: Ints, equal_golds: Marks) -> Floats:
    """Return the log-odds of near copies, given what `count_changed_words` says and which have the same answer."""
    excused = equal_golds & (changed_words >= 0) & (changed_words <= EXCUSED_WORDS)
    return np.where((changed_words == 0) | excused, COPY_SCORE, OTHER_SCORE)
