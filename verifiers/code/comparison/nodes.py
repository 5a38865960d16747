"""Linked lists and binary trees as collections of problems write them: as lists of values.

to_nodes([1, 2], "ListNode")            an Instance of ListNode with val 1, whose next has val 2
to_values(that)                         [1, 2]
to_values(a tree)                       [1, None, 2]: level by level, without what is missing at the end
"""

from __future__ import annotations

from collections import deque
from typing import Any

from truegold.verifiers.sandbox.inside.wire import Instance

MAX_NODES = 1_000_000
"""Stops lists that lead back into themselves."""

_FIELDS = {"ListNode": {"val", "next"}, "TreeNode": {"val", "left", "right"}}


def to_nodes(value: Any, type_name: str) -> Any:
    """Return the nodes that a list of values stands for, where the type says that it does."""
    if type_name.endswith("[]") and isinstance(value, list):
        return [to_nodes(item, type_name.removesuffix("[]")) for item in value]
    if not isinstance(value, list):
        return value
    if type_name == "ListNode":
        head: Instance | None = None
        for item in reversed(value):
            head = Instance("ListNode", {"val": item, "next": head})
        return head
    return _to_tree(value) if type_name == "TreeNode" else value


def _to_tree(values: list[Any]) -> Instance | None:
    nodes = [
        None if item is None else Instance("TreeNode", {"val": item, "left": None, "right": None}) for item in values
    ]
    children = iter(nodes[1:])
    for node in nodes:
        if node is not None:
            node.fields["left"] = next(children, None)
            node.fields["right"] = next(children, None)
    return nodes[0] if nodes else None


def to_values(value: Any) -> Any:
    """Return the values that nodes hold, also of nodes in a list; anything else as it is."""
    if isinstance(value, list):
        return (
            [to_values(item) for item in value] if any(isinstance(item, Instance | list) for item in value) else value
        )
    if not isinstance(value, Instance) or set(value.fields) != _FIELDS.get(value.class_name):
        return value
    values: list[Any] = []
    if value.class_name == "ListNode":
        node: Any = value
        while isinstance(node, Instance) and len(values) < MAX_NODES:
            values.append(node.fields.get("val"))
            node = node.fields.get("next")
        return values
    pending: deque[Any] = deque([value])
    while pending and len(values) < MAX_NODES:
        node = pending.popleft()
        values.append(node.fields.get("val") if isinstance(node, Instance) else None)
        if isinstance(node, Instance):
            pending += [node.fields.get("left"), node.fields.get("right")]
    while values and values[-1] is None:
        values.pop()
    return values
