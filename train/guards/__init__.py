"""Guards: what is watched while a run trains, and what is done when it goes wrong."""

from truegold.train.guards.table import GUARDS, Action, Guard
from truegold.train.guards.watch import Alarm, Watch

__all__ = ["GUARDS", "Action", "Alarm", "Guard", "Watch"]
