"""OpenRLHF: JSON Lines with an input, a label and a data source.

    {"input": [{"role": "user", "content": "Natalia sold ..."}], "label": "{\\"gold\\": \\"72\\", ...}",
     "datasource": "gsm8k_train.jsonl", "id": "9f0c...", "truegold": "{...}"}

Nothing but the label reaches OpenRLHF's reward function, so that the label is JSON text with gold, verifier and
arguments, which `truegold.verifiers.adapters.openrlhf` reads; `reward_func.py` beside the data is what
`--reward.remote_url` (in older versions `--remote_rm_url`) names. Source: OpenRLHF's datasets/prompts_dataset.py and
utils/agent.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from truegold.pipeline.export.formats.base import ExportRecord, ExportRow, Format, Message
from truegold.pipeline.tables.rows import dump_json

REWARD_FUNC = '''"""The reward of this set: --reward.remote_url reward_func.py (before OpenRLHF 0.11: --remote_rm_url).

Its columns: --data.input_key input --data.label_key label --data.apply_chat_template.
"""

from truegold.verifiers.adapters.openrlhf import reward_func

__all__ = ["reward_func"]
'''


class OpenRlhfRecord(ExportRecord):
    """A record for OpenRLHF."""

    input: str | list[Message]
    label: str
    datasource: str


def make_record(row: ExportRow, index: int) -> Mapping[str, Any]:
    """Return a row's record."""
    label = {
        "gold": row.row["gold"],
        "verifier": row.row["verifier"],
        "verifier_args": row.row["verifier_args"],
        "problem": row.row["prompt"],
        "id": row.row["id"],
    }
    return {
        "input": row.messages,
        "label": dump_json(label),
        "datasource": row.row["source"],
        "id": row.row["id"],
        "license": row.provenance.license,
        "origin": row.provenance.origin,
        "truegold": row.carried,
    }


def load(path: Path) -> int:
    """Read a split by OpenRLHF's own dataset class."""
    import tempfile

    import datasets
    from openrlhf.datasets.prompts_dataset import PromptDataset

    keys = {"input_key": "input", "label_key": "label", "apply_chat_template": False}
    # Releases before 0.11 have these settings at their root.
    arguments = SimpleNamespace(data=SimpleNamespace(**keys), **keys)
    strategy = SimpleNamespace(args=arguments, is_rank_0=lambda: False)
    with tempfile.TemporaryDirectory(prefix="truegold-") as cache:
        records = datasets.load_dataset("json", data_files=str(path), split="train", cache_dir=cache)
        return len(PromptDataset(records, None, strategy))


OPENRLHF = Format(
    "openrlhf",
    "OpenRLHF",
    "jsonl",
    make_record,
    OpenRlhfRecord,
    "openrlhf",
    load,
    companions={"reward_func.py": REWARD_FUNC},
)
