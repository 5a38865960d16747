"""Defines the formats of trainers and environments. Each format has a function from a row to a record.

    FORMATS["trl"].record(ExportRow(row), 0)  ->  {"prompt": [...], "solution": "\\\\boxed{72}", ...}

A format also has a schema of records, and the reader of the trainer's own code. `convert` writes files and checks them
with both.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, create_model

from truegold.pipeline.export.completions import DrawnCompletion
from truegold.pipeline.sources.provenance import PROMPT_MARK, Provenance, carry, provenance_of_row
from truegold.pipeline.sources.row_builder import read_split
from truegold.pipeline.tables.rows import Row, dump_json, messages_of_row, problem_of
from truegold.verifiers import gold_response, resolve
from truegold.verifiers.code.suite.row_tests import Unusable
from truegold.verifiers.conversation import SYSTEM, Message
from truegold.verifiers.gold import OTHER_GOLDS, all_golds

SPLIT_NAMES = {"train": "train", "heldout": "test"}
"""Maps truegold's splits to the names that trainers use."""


@dataclass(frozen=True)
class ExportRow:
    """A row to export, with the values that formats need."""

    row: Row
    flags: Sequence[str] = ()
    """The reasons of the row's flags."""
    system: str | None = None
    """A system message to put before the prompt."""
    user: str = PROMPT_MARK
    """The user message, in which `{prompt}` is replaced by the prompt."""
    completion: DrawnCompletion | None = None
    """A right completion."""
    rejected: DrawnCompletion | None = None
    """A wrong completion, for preference pairs."""

    @cached_property
    def arguments(self) -> dict[str, Any]:
        """The verifier's arguments."""
        arguments: dict[str, Any] = orjson.loads(self.row["verifier_args"] or "{}")
        return arguments

    @cached_property
    def meta(self) -> dict[str, Any]:
        """The source's other columns, and truegold's notes."""
        meta: dict[str, Any] = orjson.loads(self.row["meta"] or "{}")
        return meta

    @cached_property
    def provenance(self) -> Provenance:
        """The licence and the origin of the row."""
        return provenance_of_row(self.row)

    @property
    def golds(self) -> tuple[str, ...]:
        """All accepted golds. `gold` comes first."""
        return all_golds(self.row["gold"], self.arguments)

    @property
    def messages(self) -> list[Message]:
        """The conversation. Its last message is the prompt. The row's own system message replaces `system`."""
        *before, asked = messages_of_row(self.row)
        messages = [*before, Message(role=asked["role"], content=self.user.replace(PROMPT_MARK, asked["content"]))]
        has_own = messages[0]["role"] == SYSTEM
        return messages if has_own or not self.system else [{"role": SYSTEM, "content": self.system}, *messages]

    @property
    def prompt(self) -> str | list[Message]:
        """The prompt as a text, or as a conversation if there is more than one message."""
        return self.messages if len(self.messages) > 1 else self.row["prompt"]

    @cached_property
    def perfect_response(self) -> str:
        """A response with the full score, or "" if no such response can be made."""
        return gold_response(resolve(self.row["verifier"]), self.row["gold"], self.row["solution"]) or ""

    @property
    def ground_truth(self) -> str:
        """The gold or, without gold, the verifier's arguments (the tests). For trainers that accept one text."""
        return self.row["verifier_args"] if self.row["gold"] is None else self.row["gold"]

    @cached_property
    def carried(self) -> str:
        """The whole row except its prompt, as JSON text."""
        return carry(self.row, self.provenance, self.flags, self.user)

    @property
    def options(self) -> list[str]:
        """The names of the verifier's options, which a trainer's own reward ignores. Tests do not count as options."""
        return [name for name in self.arguments if name != OTHER_GOLDS] if self.row["gold"] is not None else []

    @property
    def verifier_columns(self) -> dict[str, str]:
        """The columns that name the verifier and its arguments."""
        return {"verifier": self.row["verifier"], "verifier_args": self.row["verifier_args"]}

    @property
    def source_columns(self) -> dict[str, str | None]:
        """The columns with the row's origin, and the column `truegold` with the rest of the row."""
        return {**self.origin_columns, "truegold": self.carried}

    def own_value(self, name: str) -> Any:
        """Return the value `name` in the source's `extra_info`, else in its column `name`, else None."""
        struct = self.meta.get("extra_info")
        return struct[name] if isinstance(struct, dict) and struct.get(name) is not None else self.meta.get(name)

    @cached_property
    def split(self) -> str:
        """The name of the split. A word of the source's own column `split` is used if it means the same split."""
        word, split = self.own_value("split"), self.row["split"]
        return word if isinstance(word, str) and read_split(word) == split else SPLIT_NAMES[split]

    @property
    def origin_columns(self) -> dict[str, str | None]:
        """The licence, the origin, and the source's own id of the row."""
        source_id = self.meta.get("source_id")
        return {**self.provenance._asdict(), "source_id": None if source_id is None else str(source_id)}


def has_more_than_gold(row: ExportRow) -> bool:
    """Return True if the row has tests, several golds or options of its verifier."""
    return row.row["gold"] is None or len(row.golds) > 1 or bool(row.options)


class MessageRecord(BaseModel):
    """One message of an exported conversation."""

    model_config = ConfigDict(strict=True)

    role: Literal["system", "user", "assistant", "tool"]
    content: str


PROMPT = str | list[MessageRecord]


def _schema(*, optional: Sequence[str] = (), **columns: Any) -> type[BaseModel]:
    """Return a model of records with these columns and types. Further columns are allowed, since trainers keep them.

    `optional` names columns that the trainer does not need.
    """
    fields: dict[str, Any] = {
        name: (kind | None, None) if name in optional else (kind, ...) for name, kind in columns.items()
    }
    return create_model("Record", __config__=ConfigDict(strict=True, extra="allow"), **fields)


Record = Callable[[ExportRow, int], Mapping[str, Any]]
"""A function from a row and its index in the split to a record. It raises Unusable if the format cannot hold the row.
"""


@dataclass
class Format:
    """A format. Used as a decorator: the decorated function becomes `record`, and the format is added to FORMATS."""

    name: str
    title: str
    """The programs that read the format, in a few words."""
    suffix: Literal["parquet", "jsonl"]
    schema: type[BaseModel]
    """The fields of a record, from the trainer's documentation and code."""
    package: str | None = None
    """The trainer's package, if it can be installed."""
    load: Callable[[Path], int] | None = None
    """The trainer's own reader of a split. It returns the number of rows, and raises an error if it cannot read the
    split."""
    companions: Mapping[str, str] = field(default_factory=dict)
    """Further files to write, such as a reward function. Maps each file to the file in `companions/` with its text."""
    data_dir: str = ""
    """The folder of the splits, relative to the exported folder."""
    completions: Literal["none", "right", "pairs"] = "none"
    """The completions in a record: none, a right one, or a pair of a right and a wrong one."""
    remark: str = ""
    """The second half of a message that begins with the number of rows that the trainer's own reward cannot score
    (`needs_reward`). May be empty."""
    needs_reward: Callable[[ExportRow], bool] = has_more_than_gold
    """A function that returns True if the trainer's own reward cannot score a row. Such a row needs truegold's
    reward."""
    record: Record = field(init=False)

    def __call__(self, record: Record) -> Record:
        """Add the format to FORMATS, with `record` as the function that makes its records."""
        self.record = record
        FORMATS[self.name] = self
        return record


FORMATS: dict[str, Format] = {}
"""All formats by name."""


@contextmanager
def dataset_of(path: Path) -> Iterator[Any]:
    """Load a split with Hugging Face's `datasets`, as most trainers do. The cache exists only within the context."""
    import datasets

    kind = "parquet" if path.suffix == ".parquet" else "json"
    with tempfile.TemporaryDirectory(prefix="truegold-") as cache:
        yield datasets.load_dataset(kind, data_files=str(path), split="train", cache_dir=cache)


def load_with_datasets(path: Path) -> int:
    """Load a split with `datasets` and return the number of its rows."""
    with dataset_of(path) as dataset:
        return len(dataset)


TRL_SCHEMA = _schema(
    prompt=PROMPT,
    optional=("solution", "answer", "id", "verifier", "verifier_args"),
    **dict.fromkeys(("solution", "answer", "id", "verifier", "verifier_args"), str),
)
"""GRPOTrainer needs only the prompt. It passes all other columns to the reward functions."""


def load_with_trl(path: Path) -> int:
    """Load a split as TRL's scripts do, and check that TRL recognises messages as conversations."""
    from trl import is_conversational

    with dataset_of(path) as dataset:
        if len(dataset) and not isinstance(dataset[0]["prompt"], str) and not is_conversational(dataset[0]):
            raise ValueError("TRL does not recognise the prompts as conversations")
        return len(dataset)


MORE_THAN_GOLD = "have tests, several golds or options of their verifier"


@Format(
    "trl",
    "TRL's GRPOTrainer",
    "parquet",
    TRL_SCHEMA,
    "trl",
    load_with_trl,
    remark=f"{MORE_THAN_GOLD}, which TRL's own accuracy_reward does not read: reward_funcs=[TruegoldReward()]",
)
def make_trl_record(row: ExportRow, index: int) -> Mapping[str, Any]:
    """Return a record with a conversation, and with columns that every reward function receives as lists.

        {"prompt": [{"role": "user", "content": "Natalia sold ..."}], "solution": "\\\\boxed{72}", "answer": "72",
         "id": ..., "verifier": "math", "verifier_args": "{}", "license": "mit", "origin": "openai/gsm8k", ...}

    `solution` is a response with the full score, in the form that TRL's own `accuracy_reward` reads. The worked
    solution is in the column `truegold`. The sampler uses `pass_rate` and `posterior` (`train.grpo.trl_sampler`).
    Source: TRL's docs/source/dataset_formats.md and trainer/grpo_trainer.py.
    """
    return {
        "prompt": row.messages,
        "solution": row.perfect_response,
        "answer": row.row["gold"] or "",
        "id": row.row["id"],
        **row.verifier_columns,
        **row.origin_columns,
        **{name: row.row.get(name) for name in ("pass_rate", "posterior")},
        "truegold": row.carried,
    }


TRL_SFT_SCHEMA = _schema(prompt=PROMPT, completion=PROMPT, id=str, drawn_by=str, optional=("id", "drawn_by"))
TRL_DPO_SCHEMA = _schema(
    prompt=list[MessageRecord], chosen=list[MessageRecord], rejected=list[MessageRecord], id=str, drawn_by=list[str]
)


@Format("trl-sft", "TRL's SFTTrainer", "parquet", TRL_SFT_SCHEMA, "trl", load_with_trl, completions="right")
def make_trl_sft_record(row: ExportRow, index: int) -> Mapping[str, Any]:
    """Return a record with a conversation and a right completion: TRL's "conversational prompt-completion".

        {"prompt": [{"role": "user", "content": "Natalia sold ..."}],
         "completion": [{"role": "assistant", "content": "48/2 = 24 ... \\boxed{72}"}], "drawn_by": "profile", ...}

    The completion was sampled from this prompt, which includes the texts of the run's setting `chat`. TRL computes the
    loss only on the completion. Source: TRL's docs/source/dataset_formats.md and trainer/sft_trainer.py.
    """
    assert row.completion is not None
    return {
        "prompt": row.messages,
        "completion": _reply(row.completion),
        "id": row.row["id"],
        "drawn_by": row.completion.origin,
        **row.verifier_columns,
        **row.source_columns,
    }


@Format("trl-dpo", "TRL's DPOTrainer", "parquet", TRL_DPO_SCHEMA, "trl", load_with_trl, completions="pairs")
def make_trl_dpo_record(row: ExportRow, index: int) -> Mapping[str, Any]:
    """Return a record with a right and a wrong completion: TRL's "conversational preference, explicit prompt".

        {"prompt": [{"role": "user", "content": "Natalia sold ..."}],
         "chosen": [{"role": "assistant", "content": "... \\boxed{72}"}],
         "rejected": [{"role": "assistant", "content": "... \\boxed{96}"}], "drawn_by": ["synth:retry", "profile"], ...}

    Source: TRL's docs/source/dataset_formats.md and trainer/dpo_trainer.py. Its RewardTrainer reads the same format.
    """
    assert row.completion is not None and row.rejected is not None
    return {
        "prompt": row.messages,
        "chosen": _reply(row.completion),
        "rejected": _reply(row.rejected),
        "id": row.row["id"],
        "drawn_by": [row.completion.origin, row.rejected.origin],
        **row.verifier_columns,
        **row.source_columns,
    }


def _reply(completion: DrawnCompletion) -> list[Message]:
    return [{"role": "assistant", "content": completion.text}]


VERL_SCHEMA = _schema(
    data_source=str,
    prompt=list[MessageRecord],
    ability=str,
    reward_model=_schema(style=Literal["rule", "model"], ground_truth=str),
    extra_info=_schema(split=str, index=int),
)


def load_with_verl(path: Path) -> int:
    """Read a split row by row with verl's own dataset class."""
    from omegaconf import OmegaConf
    from verl.utils.dataset.rl_dataset import RLHFDataset

    # The tokenizer is needed only for filtering by length, which is off.
    settings = OmegaConf.create({"filter_overlong_prompts": False, "cache_dir": str(path.parent / ".verl")})
    loaded = RLHFDataset(str(path), None, settings)
    for index in range(len(loaded)):
        record = loaded[index]
        if not record["raw_prompt"] or not isinstance(record["reward_model"]["ground_truth"], str):
            raise ValueError(f"verl finds no prompt or no ground truth in row {index + 1}")
    return len(loaded)


@Format(
    "verl",
    "verl",
    "parquet",
    VERL_SCHEMA,
    "verl",
    load_with_verl,
    {"compute_score.py": "verl_compute_score.py.txt"},
    remark=f"{MORE_THAN_GOLD}, which compute_score.py reads and verl's own scores do not",
)
def make_verl_record(row: ExportRow, index: int) -> Mapping[str, Any]:
    """Return a record with a conversation, a ground truth and a struct of further information.

        {"data_source": "gsm8k_train.jsonl", "prompt": [{"role": "user", "content": "Natalia sold ..."}],
         "ability": "math", "reward_model": {"style": "rule", "ground_truth": "72"},
         "extra_info": {"split": "train", "index": 0, "id": "9f0c...", "verifier": "math", ..., "truegold": "{...}"}}

    `index`, `split` and `ability` come from the source's columns or its `extra_info`. By default, they are the row's
    number, the split of the file, and the row's domain. `data_source` is the origin that the row states, or else the
    name of the row's file. `extra_info` has the same fields in all rows, because it becomes a table. So values of
    varying structure are JSON texts. The ground truth of a program is its verifier's arguments. verl's own reward
    scores only verl's own data sources. `reward.custom_reward_function.path` must therefore name `compute_score.py`
    next to the data. Source: verl's examples/data_preprocess/gsm8k.py and utils/dataset/rl_dataset.py.
    """
    return {
        "data_source": row.provenance.origin or row.row["source"],
        "prompt": row.messages,
        "ability": own_ability if isinstance(own_ability := row.own_value("ability"), str) else row.row["domain"],
        "reward_model": {"style": "rule", "ground_truth": row.ground_truth},
        "extra_info": {
            "split": row.split,
            "index": own_index if isinstance(own_index := row.own_value("index"), int) else index,
            "id": row.row["id"],
            **row.verifier_columns,
            "question": problem_of(row.row),
            **row.source_columns,
        },
    }


OPENRLHF_SCHEMA = _schema(input=PROMPT, label=str, datasource=str, optional=("datasource",))


def load_with_openrlhf(path: Path) -> int:
    """Read a split with OpenRLHF's own dataset class."""
    from openrlhf.datasets.prompts_dataset import PromptDataset

    keys = {"input_key": "input", "label_key": "label", "apply_chat_template": False}
    # Releases before 0.11 have these settings at the top level.
    arguments = SimpleNamespace(data=SimpleNamespace(**keys), **keys)
    strategy = SimpleNamespace(args=arguments, is_rank_0=lambda: False)
    with dataset_of(path) as dataset:
        return len(PromptDataset(dataset, None, strategy))


@Format(
    "openrlhf",
    "OpenRLHF",
    "jsonl",
    OPENRLHF_SCHEMA,
    "openrlhf",
    load_with_openrlhf,
    {"reward_func.py": "openrlhf_reward_func.py.txt"},
)
def make_openrlhf_record(row: ExportRow, index: int) -> Mapping[str, Any]:
    """Return a record with an input, a label and a data source.

        {"input": [{"role": "user", "content": "Natalia sold ..."}], "label": "{\\"gold\\": \\"72\\", ...}",
         "datasource": "gsm8k_train.jsonl", "id": "9f0c...", "truegold": "{...}"}

    OpenRLHF passes only the label to the reward function. The label is therefore a JSON text with gold, verifier and
    arguments, for `truegold.verifiers.adapters.openrlhf`. `--reward.remote_url` (in older versions `--remote_rm_url`)
    must name `reward_func.py` next to the data. Source: OpenRLHF's datasets/prompts_dataset.py and utils/agent.py.
    """
    label = {"gold": row.row["gold"], **row.verifier_columns, "problem": problem_of(row.row), "id": row.row["id"]}
    return {
        "input": row.messages,
        "label": dump_json(label),
        "datasource": row.provenance.origin or row.row["source"],
        "id": row.row["id"],
        **row.source_columns,
    }


OPEN_INSTRUCT_MATH = ("math", "numeric")
"""Verifiers that agree with open-instruct's `math` if the gold is a plain number."""
_PLAIN_NUMBER = re.compile(r"-?\d{1,15}(?:\.\d{1,15})?|-?\d{1,9}/\d{1,9}|-?\\frac\{\d{1,9}\}\{\d{1,9}\}")
"""A gold that open-instruct can compare. open-instruct gives \\boxed{72} the score 0 for the golds "$72$", "72 km" and
"72."."""


def _open_instruct_verifier(row: ExportRow) -> str:
    is_plain = row.row["verifier"] in OPEN_INSTRUCT_MATH and _PLAIN_NUMBER.fullmatch(row.row["gold"] or "")
    return "math" if is_plain and not has_more_than_gold(row) else "truegold"


OPEN_INSTRUCT_SCHEMA = _schema(messages=list[MessageRecord], ground_truth=str | list[str], dataset=str | list[str])


@Format(
    "open-instruct",
    "open-instruct's RLVR",
    "parquet",
    OPEN_INSTRUCT_SCHEMA,
    "datasets",
    load_with_datasets,
    remark="say `dataset: truegold`, for which open-instruct pays nothing unless its script imports "
    "truegold.verifiers.adapters.open_instruct",
    needs_reward=lambda row: _open_instruct_verifier(row) == "truegold",
)
def make_open_instruct_record(row: ExportRow, index: int) -> Mapping[str, Any]:
    """Return a record with messages, a list of one ground truth, and a list of one verifier.

        {"messages": [{"role": "user", "content": "Natalia sold ..."}], "ground_truth": ["72"], "dataset": ["math"]}
        {"messages": [...], "ground_truth": ["{\\"gold\\": \\"1/2\\", ...}"], "dataset": ["truegold"], ...}

    A row uses open-instruct's own verifier `math` if the gold is a plain number, and the row has no other golds and no
    options. The reason is that open-instruct adds up the rewards of several golds, and has no options of verifiers. For
    all other rows, the verifier is `truegold` (`truegold.verifiers.adapters.open_instruct`), and the ground truth is
    the whole row.

    Source: open-instruct's dataset_transformation.py and ground_truth_utils.py.
    """
    verifier = _open_instruct_verifier(row)
    return {
        "messages": row.messages,
        "ground_truth": [row.carried if verifier == "truegold" else row.golds[0]],
        "dataset": [verifier],
        "id": row.row["id"],
        **row.source_columns,
    }


TASKSET_SCHEMA = _schema(id=str, prompt=PROMPT, gold=str | None, verifier=str, verifier_args=str)


def load_with_verifiers(path: Path) -> int:
    """Load the taskset of the package with verifiers' own loader, and return the number of tasks in the split."""
    from verifiers.v1.utils.loaders import load_taskset, taskset_config_type

    name = path.parent.name
    sys.path.insert(0, str(path.parents[1]))
    try:
        config = taskset_config_type(name)(id=name, split=path.stem)
        return sum(1 for _ in load_taskset(config))
    finally:
        sys.path.remove(str(path.parents[1]))
        for module in [module for module in sys.modules if module.partition(".")[0] == name]:
            del sys.modules[module]


_PACKAGE = {
    "pyproject.toml": "taskset_pyproject.toml.txt",
    "$NAME/__init__.py": "taskset_init.py.txt",
    "$NAME/taskset.py": "taskset.py.txt",
}


@Format(
    "verifiers",
    "Prime Intellect's verifiers and prime-rl",
    "jsonl",
    TASKSET_SCHEMA,
    "verifiers",
    load_with_verifiers,
    _PACKAGE,
    "$NAME",
)
def make_taskset_record(row: ExportRow, index: int) -> Mapping[str, Any]:
    """Return the data of a task, which is a line of `NAME/train.jsonl` in a small package:

        OUT/pyproject.toml
        OUT/NAME/__init__.py      exports the taskset
        OUT/NAME/taskset.py       the tasks, the reward, and a check that the gold gets the reward
        OUT/NAME/train.jsonl      {"id": "9f0c...", "prompt": "Natalia sold ...", "gold": "72", "verifier": "math", ...}

    `pip install OUT` installs it as the taskset NAME. Source: verifiers' v1/taskset.py, v1/task.py,
    v1/utils/loaders.py.
    """
    return {
        "id": row.row["id"],
        "prompt": row.prompt,
        "gold": row.row["gold"],
        **row.verifier_columns,
        "solution": row.row["solution"],
        **row.source_columns,
    }


INSPECT_SCHEMA = _schema(
    input=PROMPT, target=str | list[str], id=str | int, metadata=dict[str, Any], optional=("target", "id", "metadata")
)


def load_with_inspect(path: Path) -> int:
    """Read a split with inspect's own reader."""
    from inspect_ai.dataset import json_dataset

    return len(json_dataset(str(path)))


@Format(
    "inspect",
    "inspect",
    "jsonl",
    INSPECT_SCHEMA,
    "inspect_ai",
    load_with_inspect,
    remark="have tests or options of their verifier, which inspect's own scorers do not read: "
    "scorer=truegold.verifiers.adapters.inspect.verified()",
    needs_reward=lambda row: row.row["gold"] is None or bool(row.options),
)
def make_inspect_record(row: ExportRow, index: int) -> Mapping[str, Any]:
    """Return a sample. Its target is a list if there are several golds.

        {"input": "Natalia sold ...", "target": "72", "id": "9f0c...", "metadata": {"verifier": "math", ...}}
        {"input": "...", "target": ["1/2", "0.5"], ...}

    Read it with `json_dataset("train.jsonl")` and score it with `truegold.verifiers.adapters.inspect.verified`.

    Source: inspect_ai's dataset/_dataset.py and dataset/_util.py.
    """
    return {
        "input": row.prompt,
        "target": list(row.golds) if len(row.golds) > 1 else row.ground_truth,
        "id": row.row["id"],
        "metadata": {**row.verifier_columns, **row.source_columns},
    }


NEMO_GYM_SCHEMA = _schema(responses_create_params=_schema(input=PROMPT), question=str, expected_answer=str)


@Format(
    "nemo-gym",
    "NeMo-Gym",
    "jsonl",
    NEMO_GYM_SCHEMA,
    remark=f"{MORE_THAN_GOLD}, which math_with_judge does not read: truegold.verifiers.adapters.nemo_gym.verify_fields",
)
def make_nemo_gym_record(row: ExportRow, index: int) -> Mapping[str, Any]:
    """Return a record with a request to the Responses API, and the fields that the resources server needs to score it.

        {"responses_create_params": {"input": [{"role": "user", "content": "Natalia sold ..."}]},
         "question": "Natalia sold ...", "expected_answer": "72", "id": "9f0c...", "verifier_metadata": {...}, ...}

    The server `math_with_judge` needs `question` and `expected_answer`. Source: NeMo-Gym's
    resources_servers/math_with_judge/app.py and its example data.
    """
    return {
        "responses_create_params": {"input": row.messages},
        "question": row.row["prompt"],
        "expected_answer": row.ground_truth,
        "id": row.row["id"],
        "verifier_metadata": row.verifier_columns,
        **row.source_columns,
    }


NEMO_RL_SCHEMA = _schema(input=str, output=str)


@Format(
    "nemo-rl",
    "NeMo-RL",
    "jsonl",
    NEMO_RL_SCHEMA,
    "datasets",
    load_with_datasets,
    remark="have a row as `output`, which NeMo-RL's own environments cannot read: "
    "truegold.verifiers.adapters.nemo_rl.TruegoldEnvironment",
    needs_reward=lambda _: True,
)
def make_nemo_rl_record(row: ExportRow, index: int) -> Mapping[str, Any]:
    """Return a record with an input and an output, the default fields of NeMo-RL's `ResponseDataset`.

        {"input": "Natalia sold ...", "output": "{\"gold\": \"72\", \"verifier\": \"math\", ...}", "id": "9f0c..."}

    NeMo-RL's `math_hf_data_processor` passes only one user message and the output to the reward. So the output is the
    whole row, its problem included, as JSON for `truegold.verifiers.adapters.nemo_rl`. In NeMo-RL, a system message is
    a setting (`system_prompt_file`). Source: NeMo-RL's data/processors.py and
    data/datasets/response_datasets/response_dataset.py.
    """
    if len(row.messages) > 1:
        raise Unusable(
            "context_lost",
            "NeMo-RL's processor takes one user message; the messages before it would be lost. --format nemo-gym "
            "keeps them, for its environment nemo_gym; a system message of all rows is its data.system_prompt_file",
        )
    asked = row.messages[0]["content"]
    output = dump_json({**orjson.loads(row.carried), "problem": asked})
    return {"input": asked, "output": output, "id": row.row["id"], **row.origin_columns}


PLAIN_SCHEMA = _schema(
    id=str,
    prompt=str,
    gold=str | None,
    golds=list[str],
    verifier=str,
    verifier_args=str,
    license=str | None,
    origin=str,
)


@Format("hf", "Hugging Face datasets", "parquet", PLAIN_SCHEMA, "datasets", load_with_datasets)
def make_plain_record(row: ExportRow, index: int) -> Mapping[str, Any]:
    """Return the canonical row, with further columns for its golds, licence, origin and flags.

    {"prompt": "Natalia sold ...", "gold": "72", "golds": ["72"], "verifier": "math", ..., "truegold": "{...}"}
    """
    return {
        **row.row,
        "context": dump_json(before) if (before := row.messages[:-1]) else None,
        "golds": list(row.golds),
        **row.origin_columns,
        "flags": list(row.flags),
        "truegold": row.carried,
    }
