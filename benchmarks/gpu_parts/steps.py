"""Takes whole steps of RL under DeepSpeed: every ZeRO stage, dtype, adapters, offload, checkpoints, a spoilt batch.

The model is a tiny Qwen2 with a tokenizer that is trained on the spot, the reward one that noise can earn. Ids are
drawn on the CPU, so that a run on a GPU has the batches of a run on a CPU: its losses can be compared with those.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM

from truegold.pipeline.engines.base import Completion, Request, SamplingParams, TakeRequests
from truegold.pipeline.engines.chat import load_encoder
from truegold.pipeline.tables.rows import Row
from truegold.train.config.grpo import HELDOUT_SET, GrpoConfig
from truegold.train.config.models import OptimizerConfig
from truegold.train.grpo.evaluation import EvaluationRows
from truegold.train.grpo.feed import Feed
from truegold.train.grpo.step import Trainer, make_group_source
from truegold.train.grpo.update import Updater
from truegold.train.model.checkpoints import CHATML, END, PAD, START
from truegold.train.model.distributed import init_distributed
from truegold.train.model.engine import NotFiniteError, TrainingEngine
from truegold.train.model.policy import FrozenPolicy, pad_id
from truegold.train.model.segment import Segment, collate
from truegold.train.rollout.rollout import Probe, RolloutSampler
from truegold.train.sft import negative_log_likelihood

from .figures import Figures, allocated, device, give_back, peak, qwen_config, reset_peak

VERIFIER = """
def even(response, gold):
    return float(len(response) % 2 == 0)
"""
SETTINGS: dict[str, Any] = {
    "steps": 3,
    "prompts_per_step": 4,
    "group_size": 4,
    "sampling": {"max_tokens": 12, "refills": 1},
    "objective": {"loss": "ppo", "masks": {"truncated": False}, "minibatches": 2},
    "evaluation": {"every": 0},
    "reward": {"workers": 2},
}
VARIANTS: dict[str, dict[str, Any]] = {
    **{f"float32 zero {stage}": {"optimizer": {"dtype": "float32", "zero_stage": stage}} for stage in range(4)},
    **{f"bfloat16 zero {stage}": {"optimizer": {"zero_stage": stage}} for stage in range(4)},
    "bfloat16 lora zero 1": {"optimizer": {"zero_stage": 1, "lora": {"rank": 8}}},
    "bfloat16 lora zero 2": {"optimizer": {"zero_stage": 2, "lora": {"rank": 8}}},
    "bfloat16 lora zero 3": {"optimizer": {"zero_stage": 3, "lora": {"rank": 8}}},
    "float32 lora zero 0": {"optimizer": {"zero_stage": 0, "dtype": "float32", "lora": {"rank": 8}}},
    "bfloat16 offload zero 2": {"optimizer": {"zero_stage": 2, "offload": True}},
    "bfloat16 offload zero 3": {"optimizer": {"zero_stage": 3, "offload": True}},
    "float32 offload zero 2": {"optimizer": {"zero_stage": 2, "offload": True, "dtype": "float32"}},
    "bfloat16 checkpointing zero 1": {"optimizer": {"zero_stage": 1, "gradient_checkpointing": True}},
    "bfloat16 checkpointing zero 3": {"optimizer": {"zero_stage": 3, "gradient_checkpointing": True}},
    "bfloat16 kl, top_entropy, covariance": {
        "objective": {
            "loss": "gspo",
            "masks": {"truncated": False, "top_entropy": 0.5},
            "kl": {"weight": 0.1},
            "covariance": {"kind": "kl"},
            "num_iterations": 2,
        }
    },
    "bfloat16 self-distillation": {
        "objective": {"loss": "ppo", "masks": {"truncated": False}, "self_distillation": {"weight": 0.1}}
    },
}
LR = 1e-3


class RandomSampler:
    """Stands in for vLLM: it draws random ids, and has their log-probabilities from a copy of the model in the
    trainer's dtype, whose weights are those that the trainer hands over."""

    max_model_len = 256

    def __init__(self, model: Path, dtype: str) -> None:
        self._model = AutoModelForCausalLM.from_pretrained(str(model), dtype=getattr(torch, dtype)).to(device()).eval()
        self._names = {name for name, _ in self._model.named_parameters(remove_duplicate=False)}

    @torch.no_grad()
    def _complete(self, prompt: Sequence[int], sampling: SamplingParams, seed: int) -> Completion:
        generator = torch.Generator().manual_seed(seed)
        length = int(torch.randint(2, sampling.max_tokens + 1, (1,), generator=generator))
        ids = torch.randint(3, self._model.config.vocab_size, (length,), generator=generator).tolist()
        sequence = torch.tensor([[*prompt, *ids]], device=device())
        logits = self._model(input_ids=sequence, use_cache=False).logits[0, len(prompt) - 1 : -1]
        logprobs = (logits.float() / sampling.temperature).log_softmax(-1)
        chosen = logprobs.gather(1, sequence[0, len(prompt) :].unsqueeze(1)).squeeze(1)
        return Completion(tuple(ids), tuple(chosen.tolist()), "length")

    def generate(
        self, prompts: Sequence[Sequence[int]], sampling: Sequence[SamplingParams], seeds: Sequence[int]
    ) -> list[Completion]:
        """Draw a completion of each prompt."""
        return [self._complete(*request) for request in zip(prompts, sampling, seeds, strict=True)]

    def stream(self, take: TakeRequests, sampling: SamplingParams) -> Iterator[tuple[Request, Completion]]:
        """Draw a completion of each request until there are none."""
        while (requests := take(64)) is not None:
            for request in requests:
                yield request, self._complete(request.prompt, sampling, request.seed)

    def update_weights(self, named_tensors: Iterator[tuple[str, Tensor]], version: int) -> None:
        """Copy the trainer's weights by their names. Raises RuntimeError where one is missing."""
        parameters = dict(self._model.named_parameters(remove_duplicate=False))
        loaded = set()
        with torch.no_grad():
            for name, tensor in named_tensors:
                parameters[name].copy_(tensor)
                loaded.add(name)
        missing = self._names - loaded
        if missing:
            raise RuntimeError(f"the trainer did not hand over {sorted(missing)[:5]}")

    def sleep(self, weights_follow: bool = True) -> None:
        """Do nothing: the copy stays."""

    def forget_prefixes(self) -> None:
        """Do nothing: there is no cache."""

    def head_logits(self, hidden: Tensor) -> Tensor | None:
        """Return None: it cannot tell."""
        return None

    def vectors(self) -> dict[str, Tensor]:
        """Return none."""
        return {}


def run(figures: Figures) -> None:
    """Write all figures of this part."""
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        _make_checkpoint(model)
        rows = _make_rows(Path(folder), 16)
        for name, settings in VARIANTS.items():
            with figures.attempt("trainer", name=name):
                _take_steps(figures, name, settings, model, rows, Path(folder))
            give_back()
        with figures.attempt("sft"):
            _take_packed_steps(figures, model)
        with figures.attempt("collectives"):
            _run_collectives(figures)


def _make_checkpoint(folder: Path) -> None:
    """Write a tiny random Qwen2 with a tokenizer of its own."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    texts = [f"user What is {first}+{second}? assistant" for first in range(40) for second in range(40)]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=512, special_tokens=[PAD, START, END], initial_alphabet=alphabet, show_progress=False
    )
    bpe.train_from_iterator(texts, trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token=END, pad_token=PAD)
    tokenizer.chat_template = CHATML
    config = qwen_config("tiny")
    config.vocab_size, config.eos_token_id = len(tokenizer), tokenizer.eos_token_id
    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(config, dtype=torch.float32).save_pretrained(str(folder))
    tokenizer.save_pretrained(str(folder))


def _make_rows(folder: Path, count: int) -> list[Row]:
    path = folder / "parity.py"
    path.write_text(VERIFIER)
    rows = [
        {
            "id": f"p{index}",
            "prompt": f"What is {index}+{index + 1}?",
            "gold": str(2 * index + 1),
            "domain": "math",
            "verifier": f"{path}:even",
            "verifier_args": "{}",
            "solution": None,
            "source": "made",
            "source_row": index,
            "split": "train",
            "meta": "{}",
            "pass_rate": 0.5,
            "posterior": [{"weight": 1.0, "a": 3.0, "b": 3.0}],
        }
        for index in range(count)
    ]
    return cast("list[Row]", rows)


def _make_trainer(
    settings: dict[str, Any], model: Path, rows: list[Row], folder: Path
) -> tuple[Trainer, TrainingEngine]:
    settings = SETTINGS | settings
    settings["optimizer"] = {"lr": LR, "micro_batch_tokens": 256} | settings.get("optimizer", {})
    config = GrpoConfig.model_validate(settings).resolve_masks()
    encoder = load_encoder(model, config.chat)
    engine = TrainingEngine(model, config.optimizer, pad_id(encoder), config.seed)
    engine.share_prompts()
    sampler = RandomSampler(model, config.optimizer.dtype)
    probe = Probe(sampler, engine, config, [encoder.encode(row["prompt"]) for row in rows[:2]])
    rollout = RolloutSampler(sampler, encoder, engine, config.seed, probe)
    rollout.sync(0)
    feed = Feed(rows[:8], rows[8:12], config.feed, group_size=config.group_size, steps=config.steps, seed=config.seed)
    reference = FrozenPolicy(model, config.optimizer, engine.device) if config.objective.kl.weight else None
    updater = Updater(engine, config.objective, 12, config.steps * config.objective.updates, reference)
    evaluation = SamplingParams(1.0, 1.0, 12, encoder.stop_token_ids)
    groups = make_group_source(feed, config, rollout, 12, folder)
    return Trainer(
        feed, EvaluationRows.from_sets({HELDOUT_SET: rows[12:]}), config, updater, rollout, groups, evaluation, folder
    ), engine


def _take_steps(
    figures: Figures, name: str, settings: dict[str, Any], model: Path, rows: list[Row], folder: Path
) -> None:
    """Take three steps, spoil a fourth, keep and take up a checkpoint, and export."""
    work = folder / name.replace(" ", "_")
    work.mkdir()
    before = allocated()
    started = time.monotonic()
    trainer, engine = _make_trainer(settings, model, rows, work)
    loading = time.monotonic() - started
    reset_peak()
    metrics = [trainer.step(step) for step in range(3)]
    figures.write(
        "trainer",
        name=name,
        optimizer=type(engine._engine.optimizer).__name__,
        shared=engine.shared,
        loading_s=round(loading, 2),
        loss=[each.get("loss") for each in metrics],
        grad_norm=[each.get("grad_norm") for each in metrics],
        entropy=[each.get("entropy") for each in metrics],
        mismatch=[each.get("mismatch_abs") for each in metrics],
        probe=[each.get("probe_mean_abs") for each in metrics],
        push_gap=[each.get("push_gap") for each in metrics],
        update_s=[round(each["seconds_update"] or 0.0, 3) for each in metrics],
        bytes_before=before,
        bytes_peak=peak(),
    )
    with figures.attempt("spoilt", name=name):
        _spoil(figures, name, engine)
    with figures.attempt("checkpoint", name=name):
        _go_back(figures, name, engine, work / "checkpoints")
    with figures.attempt("export", name=name):
        _export(figures, name, engine, trainer, work / "exported")
    trainer.groups.close()


PROBED = [Segment((5, 6, 7), (8, 9, 10, 11)), Segment((5, 9), (30, 31))]


def _spoil(figures: Figures, name: str, engine: TrainingEngine) -> None:
    """A loss of NaN has to leave the weights as they were, and the next step has to be taken."""
    before = torch.cat(engine.logprobs(PROBED))
    likelihood = negative_log_likelihood(engine.totals(PROBED))

    def spoilt(*arguments: Any) -> tuple[Tensor, dict[str, Tensor]]:
        loss, reported = likelihood(*arguments)
        return loss * float("nan"), reported

    refused = False
    try:
        engine.update(PROBED, spoilt, 0, 100)
    except NotFiniteError:
        refused = True
    after = torch.cat(engine.logprobs(PROBED))
    metrics = engine.update(PROBED, likelihood, 0, 100)
    moved = torch.cat(engine.logprobs(PROBED))
    figures.write(
        "spoilt",
        name=name,
        refused=refused,
        unchanged=bool(torch.equal(before, after)),
        next_loss=metrics["loss"],
        next_moves=float((moved - after).abs().max()),
    )


def _go_back(figures: Figures, name: str, engine: TrainingEngine, folder: Path) -> None:
    """Steps after a checkpoint is taken up have to be those that were taken before."""
    likelihood = negative_log_likelihood(engine.totals(PROBED))
    engine.save(folder, 1, {"some": "state"})
    logprobs = []
    for _ in range(2):
        for step in range(2):
            engine.update(PROBED, likelihood, step, 100)
        logprobs.append(torch.cat(engine.logprobs(PROBED)))
        state = engine.return_to(folder, 1)
    loaded = engine.load(folder)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    parameters = sum(tensor.numel() for key, tensor in engine.named_tensors() if key != "lm_head.weight")
    figures.write(
        "checkpoint",
        name=name,
        difference=float((logprobs[0] - logprobs[1]).abs().max()),
        state=dict(state),
        loaded=str(loaded)[:60],
        bytes_each_parameter=round(size / parameters, 2),
    )


def _export(figures: Figures, name: str, engine: TrainingEngine, trainer: Trainer, folder: Path) -> None:
    """What is exported has to give the trainer's log-probabilities when it is loaded again."""
    engine.export(folder, trainer.rollout.encoder.tokenizer)
    frozen = FrozenPolicy(folder, trainer.config.optimizer.model_copy(update={"lora": None}), engine.device)
    difference = torch.cat(frozen.logprobs(PROBED)) - torch.cat(engine.logprobs(PROBED))
    figures.write("export", name=name, difference=float(difference.abs().max()))


def _take_packed_steps(figures: Figures, model: Path) -> None:
    """Take steps of SFT with several examples in a row."""
    generator = torch.Generator().manual_seed(1)

    def ids(count: int) -> tuple[int, ...]:
        return tuple(torch.randint(3, 300, (count,), generator=generator).tolist())

    segments = [Segment(ids(5 + index), ids(20 - index)) for index in range(12)]
    losses = {}
    for dtype in ("float32", "bfloat16"):
        engine = TrainingEngine(model, OptimizerConfig(lr=LR, dtype=dtype, micro_batch_tokens=128), 0, 0)
        packs = engine.pack()
        batches = collate([[segment] for segment in segments[:2]], 0)
        assert batches.input_ids.device.type == "cpu"
        loss = negative_log_likelihood(engine.totals(segments))
        losses[dtype] = [engine.update(segments, loss, step, 10)["loss"] for step in range(3)]
        losses[f"{dtype} packs"] = packs
    figures.write("sft", **losses)


def _run_collectives(figures: Figures) -> None:
    """Run the operations that several ranks talk by, in a group of one: on a GPU over NCCL."""
    import torch.distributed as dist

    init_distributed()
    gathered: list[Any] = [None]
    dist.all_gather_object(gathered, {"some": [1, 2]})
    broadcast = [{"more": 1}]
    dist.broadcast_object_list(broadcast, src=0)
    scattered: list[Any] = [None]
    dist.scatter_object_list(scattered, [("a", 1)], src=0)
    total = torch.tensor([1.5, 2.5], dtype=torch.float64, device=device())
    dist.all_reduce(total)
    dist.barrier()
    some = replace(PROBED[0], temperature=0.5)
    figures.write(
        "collectives",
        backend=dist.get_backend(),
        results=str((gathered, broadcast, scattered, total.tolist())),
        of=str(some)[:20],
    )
