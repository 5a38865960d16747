"""Saves the stopping rule of a profile as a JSON file, and loads it.

The rule (`stopping_rule`) is learned from a pilot: random rows that are sampled first. It gives the chance of further
samples for a problem by its number of passes.

{"training_rows": 5200, "levels": [4, 6, 8, 10, 12, 14, 16], "planned": {"17": 8, ...},
 "strata": [{"source": null, "domain": null, "quotas": [], "pilot": {"4": [0.0, 0.81, ...]}, "others": {...}}], ...}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from truegold.pipeline.profile.stopping_rule import Allocation
from truegold.pipeline.rates.posterior import Group
from truegold.pipeline.running.disk import write_whole

Cell = tuple[str, str]
"""The source and the domain of a row."""
StratumKey = tuple[Group, frozenset[str]]
"""The key of a stratum: the group of rows that gives its prior, and the quotas that its rows may fill in selection."""

NAMES = {True: "pilot", False: "others"}
"""The names in the file of the two allocations: for rows of the pilot and for all other rows."""
EXPECTED = ("expected_samples", "expected_teaching", "teaching_by_all")
"""The fields of an allocation that are stored under `expected`."""


@dataclass(frozen=True)
class SavedRule:
    """The stopping rule from a pilot, which does not change afterwards."""

    allocations: Mapping[bool, Allocation]
    """The rules for rows of the pilot (True) and for other rows (False). Empty if no sample of the pilot could be
    judged."""
    strata: Mapping[Cell, StratumKey]
    """The stratum of each source and domain."""
    planned: Mapping[int, int]
    """Maps the index of each row of the pilot to its number of samples."""
    training_rows: int

    def write(self, path: Path) -> None:
        """Write the rule to a JSON file."""
        keys = list(self.allocations[False].chances) if self.allocations else []
        strata = [
            {
                "source": source,
                "domain": domain,
                "quotas": sorted(quotas),
                **{
                    NAMES[is_pilot]: {str(level): chances.tolist() for level, chances in rule.chances[key].items()}
                    for is_pilot, rule in self.allocations.items()
                },
            }
            for key in keys
            for (source, domain), quotas in (key,)
        ]
        record = {
            "training_rows": self.training_rows,
            "levels": self.allocations[False].levels if self.allocations else [],
            "expected": {
                NAMES[is_pilot]: {name: getattr(rule, name) for name in EXPECTED}
                for is_pilot, rule in self.allocations.items()
            },
            "strata": strata,
            "cells": [[*cell, keys.index(key)] for cell, key in self.strata.items()],
            "planned": {str(index): planned for index, planned in self.planned.items()},
        }
        write_whole(path, orjson.dumps(record))

    @classmethod
    def read(cls, path: Path) -> SavedRule | None:
        """Return the rule in a file, or None if the file does not exist."""
        if not path.exists():
            return None
        record: dict[str, Any] = orjson.loads(path.read_bytes())
        keys = [((each["source"], each["domain"]), frozenset(each["quotas"])) for each in record["strata"]]
        allocations = {}
        for is_pilot, name in NAMES.items():
            if name not in record["expected"]:
                continue
            chances = {
                key: {int(level): np.array(values) for level, values in stratum[name].items()}
                for key, stratum in zip(keys, record["strata"], strict=True)
            }
            allocations[is_pilot] = Allocation(tuple(record["levels"]), chances, **record["expected"][name])
        strata = {(source, domain): keys[stratum_index] for source, domain, stratum_index in record["cells"]}
        planned = {int(index): samples for index, samples in record["planned"].items()}
        return cls(allocations, strata, planned, record["training_rows"])
