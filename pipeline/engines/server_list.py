"""The servers that a configuration names. The list may change during a run.

# one URL a line; text after # is ignored
http://node-1:8000/v1
http://node-2:8000/v1
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from truegold.pipeline.config.engines import ServerEngineConfig
from truegold.verifiers import ConfigError


class ServerList:
    """The servers of `config.url`, `config.urls` or `config.urls_file`.

    Raises ConfigError if the file cannot be read, or has a line that is not a URL.
    """

    def __init__(self, config: ServerEngineConfig) -> None:
        self._path = None if config.urls_file is None else Path(config.urls_file)
        self.urls = config.urls or (() if config.url is None else (config.url,))
        if self._path is not None:
            self.urls = _read_urls(self._path)

    @property
    def may_change(self) -> bool:
        """Return whether servers may join and leave."""
        return self._path is not None

    def read_again(self) -> tuple[str, ...]:
        """Return the current servers, after reading the file again.

        An empty or unreadable file leaves the servers unchanged, since it may be being written.
        """
        if self._path is not None:
            with suppress(ConfigError):
                self.urls = _read_urls(self._path) or self.urls
        return self.urls


def _read_urls(path: Path) -> tuple[str, ...]:
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"engine.urls_file: {path} cannot be read ({error}).", "Write the URL of a server on each line."
        ) from error
    urls = [line.partition("#")[0].strip().rstrip("/") for line in lines]
    for line_number, url in enumerate(urls, 1):
        if url and not url.startswith(("http://", "https://")):
            raise ConfigError(
                f"engine.urls_file: line {line_number} of {path} is not a URL: {url[:80]!r}.",
                "Write a URL such as http://node-1:8000/v1.",
            )
    return tuple(dict.fromkeys(url for url in urls if url))
