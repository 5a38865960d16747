"""Stage `vet_tests`: are the tests of code problems fit to compute a reward with?"""

from truegold.pipeline.verify.vet.stage import vet_tests

__all__ = ["vet_tests"]
