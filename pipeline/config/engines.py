"""Settings of the engines that generate completions, and of the chat prompt."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, Tag, field_validator, model_validator
from pydantic_core import PydanticCustomError

from truegold.pipeline.config.base import SECRET, Filled, StageConfig, by_type

MOST_TOKENS = 2**31 - 1
"""The largest number of tokens that tables can hold, far above any model's context."""


def _check_variable(name: str) -> str:
    """Return the name of an environment variable. An invalid name may be the key itself, so errors never show it."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) is None:
        raise PydanticCustomError(SECRET, "must be an environment variable's name; the key belongs in that variable")
    return name


def _check_url(url: str) -> str:
    if re.match(r"https?://[^/\s]", url) is None:
        raise ValueError("must begin with http:// or https://, such as http://localhost:8000/v1")
    return url


ServerUrl = Annotated[str, AfterValidator(_check_url)]
EnvironmentVariable = Annotated[str, AfterValidator(_check_variable)]


class ChatConfig(StageConfig):
    """The prompt that puts a problem to the model."""

    system: str | None = None
    """The system message."""
    user: str = "{prompt}"
    """The user message; `{prompt}` is replaced by the problem."""
    use_template: bool = True
    """Apply the tokenizer's chat template, if it has one."""

    @field_validator("user")
    @classmethod
    def _has_placeholder(cls, user: str) -> str:
        if "{prompt}" not in user:
            raise ValueError("must contain {prompt}, the place of the problem")
        return user


class VllmEngineConfig(StageConfig):
    """vLLM inside the process: the installed build, for GPUs or for CPUs."""

    type: Literal["vllm"] = "vllm"
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """The dtype of weights and activations; `auto` takes the checkpoint's."""
    max_model_len: int = Field(default=2048, ge=16, le=MOST_TOKENS)
    """Maximum length of prompt and completion together, in tokens."""
    max_num_seqs: int = Field(default=256, ge=1)
    """The largest number of completions that are decoded at once."""
    gpu_memory_utilization: float = Field(default=0.5, gt=0, le=1)
    """The share of the GPU's memory for weights and cache."""
    cpu_kv_cache_gib: int = Field(default=2, ge=1)
    """The size of the KV cache on a CPU, in GiB."""
    cpu_threads: int | None = Field(default=None, ge=1)
    """The number of threads of an engine without a GPU. By default OMP_NUM_THREADS, or else the number of cores that
    are free at the start."""
    enforce_eager: bool | None = None
    """Run without CUDA graphs: vLLM starts sooner and decodes more slowly. By default only on CPUs."""
    sleep: bool | None = None
    """Take turns with the trainer on a shared GPU. vLLM drops weights and cache while the trainer updates; the
    optimizer's states wait in host memory while vLLM samples. By default on, if vLLM and trainer share a GPU."""
    tensor_parallel_size: int = Field(default=1, ge=1)
    """The number of GPUs that the model is spread over."""
    data_parallel_size: int = Field(default=1, ge=1)
    """The number of engines in parallel, each with its own GPUs, started through Ray. In training, more than one needs
    `asynchronous`; without it, each training process has an engine of its own."""
    ray_address: Filled | None = None
    """The address of the Ray cluster for the engines; `auto` for the cluster of this machine. By default only this
    machine is used."""
    weights_dir: Filled | None = None
    """A folder that this process and all nodes of `ray_address` share. Training passes new weights through it."""

    def sleeps(self, beside_trainer: bool) -> bool:
        """Return True if the engine takes turns with a trainer. beside_trainer: whether it shares its GPU with one."""
        return beside_trainer if self.sleep is None else self.sleep

    @model_validator(mode="after")
    def _has_engines_for_ray(self) -> VllmEngineConfig:
        if self.ray_address is not None and self.data_parallel_size == 1:
            raise ValueError("ray_address has no effect on one engine: set data_parallel_size, or leave it out")
        if self.weights_dir is not None and self.ray_address is None:
            raise ValueError("weights_dir has no effect without ray_address: weights go through memory")
        return self


class ServerEngineConfig(StageConfig):
    """Running vLLM servers with an OpenAI-compatible API. They must serve the same model as the setting `model`."""

    type: Literal["server"] = "server"
    url: ServerUrl | None = None
    """The address of the server, such as http://localhost:8000/v1."""
    urls: tuple[ServerUrl, ...] = ()
    """Several servers of the same model, instead of `url`. The run continues without a server that fails."""
    urls_file: Filled | None = None
    """A file with a server's URL on each line, instead of `urls`. It is read again every ten seconds, so servers may be
    added and removed during a run."""
    model: Filled | None = None
    """The name that the servers have for the model. Not needed if each serves only one."""
    api_key_env: EnvironmentVariable | None = None
    """The environment variable that holds the key."""
    concurrency: int = Field(default=32, ge=1)
    """The largest number of open requests to one server; a slow or overloaded server gets fewer."""
    timeout_seconds: float = Field(default=600, gt=0)
    """The time limit of one request."""
    late_seconds: float | None = Field(default=None, gt=0)
    """Seconds after which a request is also sent to a second server. By default three times the time in which the
    fastest server answers almost all requests."""
    retries: int = Field(default=3, ge=0)
    """The number of retries of a failed request."""
    resume_tokens: int | None = Field(default=None, ge=1)
    """Stream replies, and continue an interrupted completion of at least this many tokens on another server. Shorter
    completions are sampled anew. Not available in training."""
    outage_seconds: float = Field(default=60, ge=0)
    """Seconds that a run waits for a server to return if none is available."""
    weights_dir: Filled | None = None
    """A folder that this process and the server share. Training passes new weights through it."""

    @model_validator(mode="after")
    def _names_each_server_once(self) -> ServerEngineConfig:
        if (self.url is not None) + bool(self.urls) + (self.urls_file is not None) != 1:
            raise ValueError("needs one of: url (one server), urls (several), urls_file (a list that may change)")
        if len({url.rstrip("/") for url in self.urls}) < len(self.urls):
            raise ValueError("urls names a server twice")
        return self


class ChatEngineConfig(StageConfig):
    """A model behind any OpenAI-compatible API. It returns only text, without token ids and log-probabilities."""

    type: Literal["chat"] = "chat"
    base_url: str
    """The address of the service, such as https://api.openai.com/v1; `/chat/completions` is appended to it."""
    model: Filled
    """The service's name for the model."""
    api_key_env: EnvironmentVariable | None = None
    """The environment variable that holds the key, such as OPENAI_API_KEY."""
    max_concurrency: int = Field(default=8, ge=1)
    """The largest number of open requests."""
    timeout_seconds: float = Field(default=120, gt=0)
    """The time limit of one request."""
    retries: int = Field(default=6, ge=0)
    """The number of retries of a failed request (429, 5xx, incomplete reply). The pause doubles each time, unless the
    server gives one."""
    body: dict[str, Any] = Field(default_factory=dict)
    """More fields of each request; null removes a field: {temperature: null, max_tokens: null,
    max_completion_tokens: 2048}."""
    price_per_million_input: float | None = Field(default=None, ge=0)
    """The price of a million input tokens, in any currency; if a price is given, reports show costs."""
    price_per_million_output: float | None = Field(default=None, ge=0)
    """The price of a million output tokens, in the same currency."""

    @field_validator("base_url")
    @classmethod
    def _has_no_key(cls, url: str) -> str:
        if re.fullmatch(r"https?://[^/@?#\s]+(/[^@?#\s]*)?", url) is None:
            raise PydanticCustomError(
                SECRET, "must be http(s)://HOST/PATH without a name, key or query; the key belongs to api_key_env"
            )
        return url


class ScriptedEngineConfig(StageConfig):
    """A deterministic engine for tests: it takes completions from a file."""

    type: Literal["scripted"] = "scripted"
    path: Filled
    """JSON Lines of {"prompt": ..., "completions": [...]}. The first sample of a prompt gets the first completion, and
    so on. After the last one, the list starts over."""


class RepliesEngineConfig(StageConfig):
    """Stored replies of a model, used instead of calling it."""

    type: Literal["replies"] = "replies"
    path: Filled
    """JSON Lines of {"id": ..., "model": ..., "reply": ...}, or the folder where an engine of the type chat stored its
    replies."""
    model: Filled | None = None
    """The model whose replies are used, if the file has replies of several models."""


EngineConfig = Annotated[
    Annotated[VllmEngineConfig, Tag("vllm")]
    | Annotated[ServerEngineConfig, Tag("server")]
    | Annotated[ScriptedEngineConfig, Tag("scripted")],
    by_type("vllm"),
]
"""The engines for sampling: they return token ids and log-probabilities."""
AskedEngineConfig = Annotated[
    Annotated[VllmEngineConfig, Tag("vllm")]
    | Annotated[ServerEngineConfig, Tag("server")]
    | Annotated[ChatEngineConfig, Tag("chat")]
    | Annotated[RepliesEngineConfig, Tag("replies")]
    | Annotated[ScriptedEngineConfig, Tag("scripted")],
    by_type("vllm"),
]
"""The engines for questions about rows, which need only text."""
