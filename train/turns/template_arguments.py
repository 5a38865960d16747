"""Search for arguments that a chat template never reads, which are probably misspelled.

template                                            arguments                    unread
{% if enable_thinking %}<think>{% endif %}...       {"enable_thinkin": True}     enable_thinkin
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

_GENERATION_TAG = re.compile(r"\{%[-+]?\s*(?:end)?generation\s*[-+]?%\}")
"""`{% generation %}` and `{%- endgeneration -%}`, by which transformers marks text of the assistant. They are removed,
because Jinja does not know them."""


def unread_arguments(tokenizer: Any, arguments: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the arguments that a tokenizer's chat template does not read, each with all names that it does read.

    The result is empty if the template cannot be parsed.
    """
    from jinja2 import TemplateError, nodes
    from jinja2.ext import loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    template = tokenizer.chat_template
    sources: Iterable[str] = template.values() if isinstance(template, dict) else [template]
    environment = ImmutableSandboxedEnvironment(extensions=[loopcontrols])
    try:
        trees = [environment.parse(_GENERATION_TAG.sub("", source)) for source in sources]
    except (TemplateError, TypeError):
        # The template has a tag that Jinja does not know, or there is no template.
        return {}
    names = sorted({name.name for tree in trees for name in tree.find_all(nodes.Name) if name.ctx == "load"})
    return {name: names for name in arguments if name not in names}
