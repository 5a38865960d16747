"""Near duplicates among short problems: quantities, words, candidate pairs, and what two problems are to each other."""

from truegold.pipeline.near.compare import Comparer
from truegold.pipeline.near.corpus import Corpus, CorpusBuilder
from truegold.pipeline.near.duplicates import Duplicates, find_duplicates
from truegold.pipeline.near.evidence import Witness
from truegold.pipeline.near.features import FeatureBuilder, Features
from truegold.pipeline.near.links import Links, Searcher, Spread, find_links, in_threads
from truegold.pipeline.near.relation import Relation

__all__ = [
    "Comparer",
    "Corpus",
    "CorpusBuilder",
    "Duplicates",
    "FeatureBuilder",
    "Features",
    "Links",
    "Relation",
    "Searcher",
    "Spread",
    "Witness",
    "find_duplicates",
    "find_links",
    "in_threads",
]
