"""Near duplicates among short problems: quantities, words, candidate pairs, and what two problems are to each other."""

from truegold.pipeline.dedup.near.compare import Comparer
from truegold.pipeline.dedup.near.confirm import confirm_links, confirm_star_links
from truegold.pipeline.dedup.near.corpus import Corpus, CorpusBuilder
from truegold.pipeline.dedup.near.duplicates import Duplicates, find_duplicates
from truegold.pipeline.dedup.near.evidence import describe_pairs
from truegold.pipeline.dedup.near.features import FeatureBuilder, Features
from truegold.pipeline.dedup.near.links import (
    Links,
    Searcher,
    ShardLinks,
    ShardRunner,
    find_links,
    run_in_threads,
)
from truegold.pipeline.dedup.near.reading import Cuts
from truegold.pipeline.dedup.near.relation import Relation

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
    "ShardLinks",
    "ShardRunner",
    "confirm_links",
    "confirm_star_links",
    "describe_pairs",
    "find_duplicates",
    "find_links",
    "run_in_threads",
]
