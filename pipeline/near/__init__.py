"""Near duplicates among short problems: quantities and words, candidate pairs, and what two problems are to each other."""

from truegold.pipeline.near.features import FeatureBuilder, Features
from truegold.pipeline.near.links import Links, find_links
from truegold.pipeline.near.relation import Relation

__all__ = ["FeatureBuilder", "Features", "Links", "Relation", "find_links"]
