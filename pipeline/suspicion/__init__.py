"""How likely each label is at fault, from the answers of one or several systems: hard, mislabeled or ambiguous?"""

from truegold.pipeline.suspicion.assess import Assessment, Fit, assess
from truegold.pipeline.suspicion.ballot import Ballot, Votes
from truegold.pipeline.suspicion.item import Item, Sample
from truegold.pipeline.suspicion.stage import suspect
from truegold.pipeline.suspicion.tiers import Tier

__all__ = ["Assessment", "Ballot", "Fit", "Item", "Sample", "Tier", "Votes", "assess", "suspect"]
