"""Stage `vet_tests`: checks whether the tests of code problems can compute a reward."""

from truegold.pipeline.verify.vet.stage import vet_tests

__all__ = ["vet_tests"]
