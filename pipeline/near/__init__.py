"""Near duplicates among short problems: quantities, words, candidate pairs, and what two problems are to each other."""

from truegold.pipeline.near.confirmation import Cuts, confirm_links, confirm_star_links
from truegold.pipeline.near.corpus import Corpus, CorpusBuilder
from truegold.pipeline.near.duplicates import Duplicates, find_duplicates
from truegold.pipeline.near.features import FeatureBuilder, Features
from truegold.pipeline.near.measures import Comparer, Relation, describe_pairs
from truegold.pipeline.near.related_pairs import (
    Links,
    Searcher,
    ShardRunner,
    find_links,
    run_in_threads,
)

__all__ = [
    "Comparer",
    "Corpus",
    "CorpusBuilder",
    "Cuts",
    "Duplicates",
    "FeatureBuilder",
    "Features",
    "Links",
    "Relation",
    "Searcher",
    "ShardRunner",
    "confirm_links",
    "confirm_star_links",
    "describe_pairs",
    "find_duplicates",
    "find_links",
    "run_in_threads",
]
