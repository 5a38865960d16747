"""How likely each label is at fault, from the answers of one or several systems: hard, mislabeled or ambiguous?"""

from truegold.pipeline.flag.suspicion.assess import Assessment, Fit, assess
from truegold.pipeline.flag.suspicion.ballot import Ballot, Votes
from truegold.pipeline.flag.suspicion.item import Item, Sample
from truegold.pipeline.flag.suspicion.stage import suspect
from truegold.pipeline.flag.suspicion.tiers import Tier

__all__ = ["Assessment", "Ballot", "Fit", "Item", "Sample", "Tier", "Votes", "assess", "suspect"]
