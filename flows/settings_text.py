"""Reads settings from YAML as a person means them.

off: [slow]          the setting `off`; plain YAML reads that key as the truth value false
tolerance: 1e-3      a number; plain YAML wants 1.0e-3
limit: 3             twice in one section is a mistake; plain YAML takes the last
"""

from __future__ import annotations

import re
from typing import Any

import yaml


class _SettingsLoader(yaml.SafeLoader):
    """The safe loader, for which every key is a text that stands once."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return the section with its keys as they are written. Raises YAMLError for one that stands twice."""
        written: set[str] = set()
        for key_node, _ in node.value:
            problem = None
            if not isinstance(key_node, yaml.ScalarNode):
                problem = "a setting's name is a text"
            elif key_node.value in written:
                problem = f"{key_node.value!r} is set twice in one section"
            if problem is not None:
                raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
            written.add(key_node.value)
        self.flatten_mapping(node)  # What `<<` brings in stands first, so that what is written beside it wins.
        return {key_node.value: self.construct_object(value_node, deep=True) for key_node, value_node in node.value}


_SettingsLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)[eE][-+]?\d+"), list("-+0123456789.")
)


def parse_settings(text: str) -> Any:
    """Return what YAML text stands for. Raises YAMLError, whose text says where."""
    # Nothing but plain values can come of it: it is a safe loader.
    return yaml.load(text, Loader=_SettingsLoader)
