"""Rollouts with vLLM in this process, in other processes or on servers.

After each sync of weights, the probe compares the log-probabilities of the sampling engine with the trainer's.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from importlib.resources import files
from itertools import islice
from pathlib import Path

import torch

from truegold.pipeline.config.engines import ServerEngineConfig, VllmEngineConfig
from truegold.pipeline.engines.base import Completion, SamplingParams, sample_seed
from truegold.pipeline.engines.chat import ChatEncoder, encode_row
from truegold.pipeline.engines.server_pool import ServerList
from truegold.pipeline.engines.vllm_local import GPU_BLOCK_TOKENS, VllmEngine
from truegold.pipeline.running.ray_cluster import join_cluster
from truegold.pipeline.tables.rows import Row
from truegold.train.config.grpo import GrpoConfig
from truegold.train.guards.table import PROBE
from truegold.train.model.distributed import Note, all_max, gathered, print_note, rank
from truegold.train.model.ending import interruptible
from truegold.train.model.engine import TrainingEngine
from truegold.train.model.segment import Segment, collate
from truegold.train.objective import Mismatch, mismatch
from truegold.train.rollout.sampler import GO_ON
from truegold.train.rollout.sampler_child import SamplerSetup
from truegold.train.rollout.samplers import SamplerPool
from truegold.train.rollout.weight_transfer import ServerRollouts
from truegold.verifiers import GuardError, TruegoldError

RolloutEngine = VllmEngine | SamplerPool
"""An engine that samples, loads new weights (`update_weights`), and frees GPU memory until its next use (`sleep`).
`forget_prefixes`, `head_logits` and `vectors` help to find out why the engine differs from the trainer. All ranks call
its methods together."""


@contextmanager
def engine_deaths_reported(step: int) -> Iterator[None]:
    """Turn an error of the sampling engine into a GuardError with the step. Evaluations have negative steps."""
    try:
        yield
    except TruegoldError:
        raise
    except Exception as error:
        reason = str(error).strip().split("\n", 1)[0][:200]
        moment = f"at step {step}" if step >= 0 else "in an evaluation"
        raise GuardError(
            f"The sampling engine died {moment}: {type(error).__name__}: {reason}",
            GO_ON,
            "engine",
        ) from error


@dataclass
class RolloutSampler:
    """Samples completions, and sends the training engine's weights to the sampling engine."""

    engine: RolloutEngine
    encoder: ChatEncoder
    trainer: TrainingEngine
    seed: int
    probe: Probe
    version: int = 0
    """The version of the weights that the sampling engine has."""

    def __post_init__(self) -> None:
        if isinstance(self.engine, VllmEngine) and self.engine.takes_turns:
            self.engine.make_room = self.trainer.release_states
            self.trainer.make_room = partial(self.engine.sleep, weights_follow=False)

    def sample(
        self, rows: Sequence[Row], sampling: Sequence[SamplingParams], step: int, groups: Sequence[int], size: int
    ) -> tuple[list[tuple[int, ...]], list[list[Completion]]]:
        """Return the prompt ids and the group of completions of each row, in order.

        sampling: the sampling parameters of each row. groups: the number of each row's group in the step. size: the
        number of completions of a group. The seed of a completion depends only on the run, the step, the row, the group
        and the index in the group.
        """
        prompts = [tuple(encode_row(self.encoder, row)) for row in rows]
        seeds = [
            sample_seed(self.seed, step, group, row["id"], index)
            for group, row in zip(groups, rows, strict=True)
            for index in range(size)
        ]
        repeated_sampling = [params for params in sampling for _ in range(size)]
        repeated_prompts = [prompt for prompt in prompts for _ in range(size)]
        # All ranks share a pool of samplers. It is not interrupted, because it handles failures itself.
        alone = nullcontext() if isinstance(self.engine, SamplerPool) else interruptible()
        with alone, engine_deaths_reported(step):
            # Ranks may share an engine, so ranks without rows call it too.
            completions = iter(self.engine.generate(repeated_prompts, repeated_sampling, seeds))
        return prompts, [list(islice(completions, size)) for _ in rows]

    def sync(self, version: int) -> Mismatch:
        """Send the trainer's weights to the sampling engine and compare the two. Raises GuardError if they differ."""
        self.send(version)
        return self.probe.check(version)

    def send(self, version: int) -> None:
        """Send the trainer's weights to the sampling engine."""
        self.engine.update_weights(self.trainer.named_tensors(), version)
        self.version = version


def build_rollout_engine(model: Path, config: GrpoConfig, note: Note = print_note) -> RolloutEngine:
    """Return the sampling engine of a training, loaded from the checkpoint in folder `model`.

    It is vLLM in this process, or a pool of samplers in other processes or on servers. note: a function that shows
    lines on lost and returned samplers.
    """
    engine, asynchronous = config.engine, config.asynchronous
    if isinstance(engine, ServerEngineConfig):
        return SamplerPool(_ListedServers(model, config, engine), engine.weights_dir, engine.outage_seconds, note)
    if asynchronous is None:
        return VllmEngine(model, engine, True)
    by_ray = engine.data_parallel_size > 1
    if by_ray and rank() == 0:
        # Done before the samplers' threads start. Otherwise each of them joins the cluster at the same time.
        join_cluster(engine.ray_address, "engine.ray_address")
    devices = enumerate((None,) * engine.data_parallel_size if by_ray else asynchronous.sampler_devices)
    setups = [SamplerSetup(str(index), model, engine, config.chat, config.turns, gpus) for index, gpus in devices]
    return SamplerPool(lambda: setups, engine.weights_dir, note=note)


class _ListedServers:
    """The samplers of the servers that the configuration lists now. The list may change while a training runs."""

    def __init__(self, model: Path, config: GrpoConfig, engine: ServerEngineConfig) -> None:
        self._model, self._config, self._engine = model, config, engine
        self._list = ServerList(engine)
        self._names: dict[str, str] = {}

    def __call__(self) -> list[SamplerSetup]:
        """Return the setup of a sampler for each listed server."""
        urls = self._list.read_again()
        alone = len(urls) == 1 and not self._list.may_change
        # With several servers, the training does not wait for a lost one. The other servers take over its work.
        patience = {} if alone else {"outage_seconds": 0}
        return [
            SamplerSetup(
                self._names.setdefault(url, str(len(self._names))),
                self._model,
                self._engine.model_copy(update={"url": url, "urls": (), "urls_file": None, **patience}),
                self._config.chat,
                self._config.turns,
            )
            for url in urls
        ]


def max_length(config: VllmEngineConfig | ServerEngineConfig) -> int:
    """Return the largest number of tokens of prompt and completion for an engine, without loading it."""
    if isinstance(config, VllmEngineConfig):
        return config.max_model_len
    servers = ServerRollouts(config)
    servers.close()
    return servers.max_model_len


def probe_length(engine: RolloutEngine) -> int:
    """Return the number of tokens of the probe's prompts.

    A prompt fills a block of the engine's prefix cache. So the probe finds a cache of older weights.
    """
    return 1 + (engine.block_tokens if isinstance(engine, VllmEngine) else GPU_BLOCK_TOKENS)


MAX_ABS = {"float32": 1e-3, "tf32": 0.01, "bfloat16": 0.1}
"""The largest mean |Δ log p| (nats) between the engines, by the less precise dtype of the two.

Measured noise is 1e-7 in float32, 9e-4 in float32 on a GPU, and 0.04 in bfloat16. Measured faults in float32 are 0.035
for an output head of older weights, 0.06 for a prefix cache of older weights, and 0.2 for a temperature that is not
applied.
"""

FLOOR_FACTOR = 4.0
"""The largest |Δ log p| is this multiple of its value in the first probe, when both engines had just loaded the same
weights."""

MIN_FLOOR = {"float32": 1e-4, "tf32": 1e-3, "bfloat16": 0.02}
"""The smallest |Δ log p| that is assumed for the first probe. A probe of 64 tokens is noisy."""

SAME_DISTANCE = 1e-6
"""A temperature had no effect if |Δ log p| changes by a smaller share than this."""
TEMPERATURES = tuple(step / 20 for step in range(2, 41))
"""Temperatures that are tried, to find the one that the sampling engine uses."""

VECTOR_TOLERANCE = 1e-5
"""The largest difference between norms or biases of the two engines that rounding explains. It is relative to the
largest value, if this is above 1."""

HEAD_TOLERANCE = {"float32": 1e-3, "tf32": 5e-3, "bfloat16": 0.05}
"""The largest difference between logits of the two output heads for one hidden state, relative to the largest logit."""

SHOWN_LAYERS = 8
"""The largest number of layers with older weights that the error names."""
CAUSES = tomllib.loads(files("truegold.train.rollout").joinpath("probe_causes.toml").read_text("utf-8"))
"""The `cause` and `remedy` of each known difference between the engines, by name."""


@dataclass
class Probe:
    """A comparison of the sampling engine with the training engine after each weight sync.

    The sampling engine continues a few fixed prompts. Its log-probabilities of these tokens are compared with the
    training engine's. If they differ by more than rounding, known causes are tested one after another, and the
    error names the cause.
    """

    engine: RolloutEngine
    trainer: TrainingEngine
    config: GrpoConfig
    prompts: Sequence[Sequence[int]]
    """The token ids of each prompt, long enough to fill a block of the prefix cache."""
    floor: float | None = None
    """The mean |Δ log p| of the first probe, part of a checkpoint."""

    @cached_property
    def sampler_dtype(self) -> str:
        """The dtype of the sampling engine's weights, or the trainer's if the engine does not show its weights."""
        dtypes = {str(vector.dtype).removeprefix("torch.") for vector in self.engine.vectors().values()}
        known = gathered(sorted(dtypes))[0]
        return known[0] if known else self.config.optimizer.dtype

    @property
    def dtype(self) -> str:
        """The less precise dtype of the two engines, which sets the limits.

        float32 on a GPU counts as `tf32`, because vLLM's attention multiplies with ten bits there.
        """
        if not self.sampler_dtype == self.config.optimizer.dtype == "float32":
            return "bfloat16"
        return "tf32" if self.trainer.device.type == "cuda" else "float32"

    def check(self, version: int) -> Mismatch:
        """Return the difference between the engines. All ranks call this together.

        Raises GuardError with the cause if the engines of any rank differ too much, unless `guards.off` has the probe.
        """
        distance = self._measure_mismatch(self._sample(version))
        if PROBE in self.config.guards.off:
            return distance
        if not math.isfinite(distance.mean_abs):
            raise GuardError(
                f"At weights version {version} log-probabilities are not finite: one of the engines has weights that "
                "are NaN or infinite.",
                "Continue from an earlier checkpoint, with a lower learning rate.",
                PROBE,
            )
        if self.floor is None:
            self.floor = max(distance.mean_abs, MIN_FLOOR[self.dtype])
        limit = self._limit()
        if distance.mean_abs > limit:
            cause, remedy = self._explain(version, distance.mean_abs)
            raise GuardError(
                f"At weights version {version} the sampling and the training engine disagree: mean |Δ log p| is "
                f"{distance.mean_abs:.2g} over {distance.tokens} probe tokens, the limit {limit:.2g}. {cause}",
                remedy,
                PROBE,
            )
        return distance

    def _limit(self) -> float:
        """Return the largest allowed mean |Δ log p|."""
        max_abs = MAX_ABS[self.dtype]
        return max_abs if self.floor is None else min(max_abs, FLOOR_FACTOR * self.floor)

    def _sample(self, version: int) -> list[Segment]:
        """Return continuations of the prompts by the sampling engine, at the configured temperature."""
        temperature = self.config.sampling.temperature_for(version, None)
        sampling = [SamplingParams(temperature, 1.0, self.config.probe.tokens)] * len(self.prompts)
        seeds = [sample_seed(self.config.seed, "probe", index) for index in range(len(self.prompts))]
        return [
            Segment(tuple(prompt), done.token_ids, done.logprobs, temperature=temperature)
            for prompt, done in zip(self.prompts, self.engine.generate(self.prompts, sampling, seeds), strict=True)
        ]

    def _measure_mismatch(self, segments: Sequence[Segment]) -> Mismatch:
        """Return the difference between the training engine's log-probabilities and those at sampling.

        `mean_abs` is taken from the worst rank.
        """
        batch = collate([[segment] for segment in segments], pad_id=0)
        trainer_logprobs = batch.rollout_logprobs.clone()
        for row, logprobs in enumerate(self.trainer.logprobs(segments)):
            trainer_logprobs[row, : len(logprobs)] = logprobs
        distance = mismatch(batch.rollout_logprobs, trainer_logprobs, batch.mask)
        # NaN is replaced by infinity, because a maximum over ranks may ignore NaN.
        return replace(distance, mean_abs=all_max(float("inf") if math.isnan(distance.mean_abs) else distance.mean_abs))

    def _explain(self, version: int, mean_abs: float) -> tuple[str, str]:
        """Return the cause of a difference of `mean_abs` between the engines, and a remedy."""
        segments = self._sample(version)
        assumed = segments[0].temperature
        distances = {
            temperature: self._measure_mismatch([replace(segment, temperature=temperature) for segment in segments])
            for temperature in TEMPERATURES
        }
        layers: Collection[str] = ()
        best = min(distances, key=lambda temperature: distances[temperature].mean_abs)
        apart = [distance.mean_abs for distance in distances.values()]
        if best != assumed and distances[best].mean_abs < max(self._limit(), mean_abs / 4):
            name = "other_temperature"
        elif max(apart) - min(apart) < SAME_DISTANCE * max(apart):
            name = "no_temperature"
        else:
            name, layers = self._find_stale_part(version)
        cause = CAUSES[name]["cause"].format(
            best=best,
            assumed=assumed,
            layers=", ".join(sorted(layers)[:SHOWN_LAYERS]),
            sampler=self.sampler_dtype,
            trainer=self.config.optimizer.dtype,
        )
        return cause, CAUSES[name]["remedy"]

    def _find_stale_part(self, version: int) -> tuple[str, Collection[str]]:
        """Return the name of a cause (`CAUSES`), and the layers whose weights do not arrive in the sampling engine."""
        _, stale = self._compare_layers()
        if not stale and all_max(self._head_difference()) > HEAD_TOLERANCE[self.dtype]:
            return "stale_head", ()
        self.engine.forget_prefixes()
        if self._measure_mismatch(self._sample(version)).mean_abs <= self._limit():
            return "stale_prefixes", ()
        self.engine.update_weights(self.trainer.named_tensors(), version)
        self.engine.forget_prefixes()
        if self._measure_mismatch(self._sample(version)).mean_abs <= self._limit():
            return "stale_weights", ()
        current, stale = self._compare_layers()
        if stale:
            return ("layers_not_arriving" if current else "not_arriving"), stale
        return ("other_dtype" if self.sampler_dtype != self.config.optimizer.dtype else "unexplained"), ()

    def _compare_layers(self) -> tuple[set[str], set[str]]:
        """Return the layers that are equal in both engines, and the layers that differ or were not sent completely.
        Layers are compared by their one-dimensional weights: norms and biases."""
        engine_vectors = self.engine.vectors()
        handed: set[str] = set()
        current: set[str] = set()
        stale: set[str] = set()
        whole = self.config.optimizer.lora is None
        parameters = dict(self.trainer.causal_lm.named_parameters()) if whole else {}
        for name, tensor in self.trainer.named_tensors():
            handed.add(name)
            if name in parameters and not torch.equal(parameters[name], tensor):
                # The weights that are sent are not those in training.
                stale.add(_layer(name))
            vector = engine_vectors.get(name)
            if vector is None or tensor.shape != vector.shape:
                continue
            # Rounded to the dtype of the sampling engine.
            rounded = tensor.detach().cpu().to(vector.dtype).float()
            difference = float(
                (rounded - vector.detach().cpu().float()).abs().max() / rounded.abs().max().clamp(min=1.0)
            )
            (stale if difference > VECTOR_TOLERANCE else current).add(_layer(name))
        # `_head_difference` compares the output head.
        stale |= {_layer(name) for name in parameters if name not in handed and "lm_head" not in name}
        stale = set[str]().union(*gathered(stale))
        return current - stale, stale

    def _head_difference(self) -> float:
        """Return the largest difference between the logits of the two output heads, relative to the largest logit.

        Both get the same random hidden states. Returns 0 if the engine does not show its head.
        """
        weight = self.trainer.causal_lm.get_output_embeddings().weight
        with self.trainer.whole(weight):
            hidden = torch.randn(4, weight.shape[1], generator=torch.Generator().manual_seed(0)).to(weight)
            trainer_logits = self.trainer.logits(hidden).float().cpu()
        engine_logits = self.engine.head_logits(hidden)
        if engine_logits is None:
            return 0.0
        columns = min(trainer_logits.shape[1], engine_logits.shape[1])
        difference = (trainer_logits[:, :columns] - engine_logits[:, :columns].float().cpu()).abs().max()
        return float(difference / trainer_logits.abs().max().clamp(min=1e-9))


def _layer(name: str) -> str:
    """Return the layer of a weight: model.layers.3.mlp.down_proj.weight -> model.layers.3."""
    parts = name.split(".")
    position = next((index for index, part in enumerate(parts) if part.isdigit()), len(parts) - 2)
    return ".".join(parts[: position + 1])
