"""Settings of the engines that completions come from, and of how a problem is put to the model."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, Tag, field_validator, model_validator
from pydantic_core import PydanticCustomError

from truegold.pipeline.config.base import SECRET, StageConfig, by_type

MOST_TOKENS = 2**31 - 1
"""The greatest length that tables hold, which no model comes near to."""


def _check_variable(name: str) -> str:
    """Return the name of an environment variable. What cannot be one may be the key itself, and is never shown."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) is None:
        raise PydanticCustomError(SECRET, "must be the name of an environment variable; the key itself belongs there")
    return name


EnvironmentVariable = Annotated[str, AfterValidator(_check_variable)]


class ChatConfig(StageConfig):
    """How a prompt becomes what the model is given."""

    system: str | None = None
    """The system message."""
    user: str = "{prompt}"
    """The user message; `{prompt}` stands for the problem."""
    use_template: bool = True
    """Apply the tokenizer's chat template, where it has one."""

    @model_validator(mode="after")
    def _has_placeholder(self) -> ChatConfig:
        if "{prompt}" not in self.user:
            raise ValueError("must contain {prompt}, the place of the problem")
        return self


class VllmEngineConfig(StageConfig):
    """vLLM inside the process: the build that is installed, for GPUs or for CPUs."""

    type: Literal["vllm"] = "vllm"
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """The dtype of weights and activations; the checkpoint's where `auto`."""
    max_model_len: int = Field(default=2048, ge=16, le=MOST_TOKENS)
    """The longest prompt plus completion, in tokens."""
    max_num_seqs: int = Field(default=256, ge=1)
    """Completions that are decoded at once, at most."""
    gpu_memory_utilization: float = Field(default=0.5, gt=0, le=1)
    """The share of the GPU's memory for weights and cache."""
    cpu_kv_cache_gib: int = Field(default=2, ge=1)
    """The size of the cache on a CPU, in GiB."""
    cpu_threads: int | None = Field(default=None, ge=1)
    """Threads that an engine without a GPU samples with. Left out: one for each core that is free at its start, unless
    the environment names a number (OMP_NUM_THREADS)."""
    enforce_eager: bool | None = None
    """Run without CUDA graphs: vLLM starts sooner and decodes more slowly. On CPUs alone where it is left out."""
    sleep: bool | None = None
    """Take turns with the trainer on a GPU: vLLM drops weights and cache while the trainer updates, and the optimizer's
    states wait in host memory while vLLM samples. Where it is left out, on a GPU that both share."""
    tensor_parallel_size: int = Field(default=1, ge=1)
    """GPUs that the model is spread over."""
    data_parallel_size: int = Field(default=1, ge=1)
    """Engines side by side, each with GPUs of its own, through Ray. In training with `asynchronous` alone: next to the
    trainer each rank has one."""
    ray_address: str | None = None
    """The Ray cluster whose nodes they are on (`auto` for the one that this machine belongs to); this machine alone
    where not given."""
    weights_dir: str | None = None
    """A folder that this process and all nodes of `ray_address` see: training hands new weights over in it."""

    def sleeps(self, beside_trainer: bool) -> bool:
        """Return whether an engine on a GPU takes turns. beside_trainer: whether a trainer has the same GPU."""
        return beside_trainer if self.sleep is None else self.sleep

    @model_validator(mode="after")
    def _has_engines_for_ray(self) -> VllmEngineConfig:
        if self.ray_address is not None and self.data_parallel_size == 1:
            raise ValueError("ray_address has no effect on one engine: set data_parallel_size, or leave it out")
        if self.weights_dir is not None and self.ray_address is None:
            raise ValueError("weights_dir has no effect without ray_address: weights go through memory")
        return self


class ServerEngineConfig(StageConfig):
    """Running vLLM servers (their OpenAI-compatible API), which must serve the model that `model` names."""

    type: Literal["server"] = "server"
    url: str | None = None
    """The address of the server, such as http://localhost:8000/v1."""
    urls: tuple[str, ...] = ()
    """Several servers of the same model, instead of `url`. One that dies or answers nonsense is done without."""
    urls_file: str | None = None
    """A file with the URL of a server on each line, instead of `urls`. It is read again every ten seconds: servers that
    are added take part, and those that are taken away get no further request."""
    model: str | None = None
    """The name it is served under; each server's only model where not given."""
    api_key_env: EnvironmentVariable | None = None
    """The environment variable that holds the key."""
    concurrency: int = Field(default=32, ge=1)
    """Requests that wait for a server's answer at once, at most; a server that is slow or overloaded gets fewer."""
    timeout_seconds: float = Field(default=600, gt=0)
    """How long one request may take."""
    late_seconds: float | None = Field(default=None, gt=0)
    """The seconds after which a request is sent to a second server as well; where not given, three times what the
    fastest server needs for almost all of its requests."""
    retries: int = Field(default=3, ge=0)
    """How often a failed request is repeated."""
    resume_tokens: int | None = Field(default=None, ge=1)
    """Replies are streamed, and a completion whose server is lost goes on from its tokens on another one, if there are
    this many; otherwise it is drawn anew. Not in training."""
    outage_seconds: float = Field(default=60, ge=0)
    """How long a run waits for a server to come back when none is left."""
    weights_dir: str | None = None
    """A folder that this process and the server both see: training hands new weights over in it."""

    @model_validator(mode="after")
    def _names_each_server_once(self) -> ServerEngineConfig:
        if (self.url is not None) + bool(self.urls) + (self.urls_file is not None) != 1:
            raise ValueError("needs one of url, of one server, urls, of several, and urls_file, of some that change")
        if len({url.rstrip("/") for url in self.urls}) < len(self.urls):
            raise ValueError("urls names a server twice")
        return self


class ChatEngineConfig(StageConfig):
    """A model behind any OpenAI-compatible API. It gives text alone: no token ids and no log-probabilities."""

    type: Literal["chat"] = "chat"
    base_url: str
    """The address of the service, such as https://api.openai.com/v1; requests go to `/chat/completions` below it."""
    model: str = Field(min_length=1)
    """The name of the model at the service."""
    api_key_env: EnvironmentVariable | None = None
    """The environment variable that holds the key, such as OPENAI_API_KEY."""
    max_concurrency: int = Field(default=8, ge=1)
    """Requests that wait for an answer at once, at most."""
    timeout_seconds: float = Field(default=120, gt=0)
    """How long one request may take."""
    retries: int = Field(default=6, ge=0)
    """How often a failed request is repeated (429, 5xx, no whole reply), each time after twice the pause, or when the
    server says."""
    body: dict[str, Any] = Field(default_factory=dict)
    """Further fields of each request; null takes one away: {temperature: null, max_tokens: null,
    max_completion_tokens: 2048}."""
    price_per_million_input: float | None = Field(default=None, ge=0)
    price_per_million_output: float | None = Field(default=None, ge=0)
    """The price of a million tokens, in any currency: reports then have the costs."""

    @field_validator("base_url")
    @classmethod
    def _has_no_key(cls, url: str) -> str:
        if re.fullmatch(r"https?://[^/@?#\s]+(/[^@?#\s]*)?", url) is None:
            raise PydanticCustomError(
                SECRET, "must be http(s)://HOST/PATH, without a name, a key or a query: the key goes into api_key_env"
            )
        return url


class ScriptedEngineConfig(StageConfig):
    """A deterministic engine for tests: it draws completions from a file of prompts and answers."""

    type: Literal["scripted"] = "scripted"
    path: str
    """JSON Lines of {"prompt": ..., "completions": [...]}: the i-th sample of a prompt gets the i-th, going round."""


class RepliesEngineConfig(StageConfig):
    """Replies that a model has given before, in place of a model."""

    type: Literal["replies"] = "replies"
    path: str
    """JSON Lines of {"id": ..., "model": ..., "reply": ...}, or the folder in which an engine of the type chat has kept
    its replies."""
    model: str | None = None
    """The model whose replies are taken, where the file has those of several."""


EngineConfig = Annotated[
    Annotated[VllmEngineConfig, Tag("vllm")]
    | Annotated[ServerEngineConfig, Tag("server")]
    | Annotated[ScriptedEngineConfig, Tag("scripted")],
    by_type("vllm"),
]
"""The engines that sample: token ids and their log-probabilities."""
AskedEngineConfig = Annotated[
    Annotated[VllmEngineConfig, Tag("vllm")]
    | Annotated[ServerEngineConfig, Tag("server")]
    | Annotated[ChatEngineConfig, Tag("chat")]
    | Annotated[RepliesEngineConfig, Tag("replies")]
    | Annotated[ScriptedEngineConfig, Tag("scripted")],
    by_type("vllm"),
]
"""The engines that are asked questions: text is enough."""
