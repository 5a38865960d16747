"""What a suite states of its function's types, as far as drivers cannot see it in the program.

    {"params": ["ListNode", "int"], "returns": "ListNode"}            Signature(("ListNode", ""), "ListNode")
    "def merge(self, lists: List[Optional[ListNode]]) -> None: ..."   Signature(("ListNode[]",), "void")

C++, Java, Go and Rust programs state their types themselves. JavaScript and Python do not, or not reliably: there it
matters which lists stand for nodes, and whether the result is the changed argument.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from truegold.verifiers.code.bad_suite import BadSuite, shown
from truegold.verifiers.code.syntax import parse

_NODE = re.compile(r"\b(ListNode|TreeNode)\b")
_NODE_LIST = re.compile(r"(?:List|list|Sequence|vector|ArrayList|Array|Vec)\s*[\[<]|\[\s*\]")
_JSDOC_PARAM = re.compile(r"@param\s*\{([^}\n]{1,200})\}")
_JSDOC_RETURN = re.compile(r"@returns?\s*\{([^}\n]{1,200})\}")
VOID = "void"


@dataclass(frozen=True, slots=True)
class Signature:
    """The types that matter: `ListNode`, `TreeNode`, lists of these (`ListNode[]`), `void`, or an empty text."""

    params: tuple[str, ...] = ()
    returns: str = ""

    def param(self, index: int) -> str:
        """Return the type of a parameter, an empty text where it is not known."""
        return self.params[index] if index < len(self.params) else ""


def read_signature(value: Any, name: str, field: str) -> Signature | None:
    """Return the signature that a suite states, in Python or as an object; None where it states none.

    Raises `BadSuite`.
    """
    if value is None or value == "":
        return None
    if isinstance(value, str):
        signature = signature_of_stub(value, name)
        if signature is None:
            raise BadSuite(f"{field} must define {name}, as in 'def {name}(head: ListNode) -> ListNode'")
        return signature
    params = value.get("params") if isinstance(value, Mapping) else None
    returns = value.get("returns", "") if isinstance(value, Mapping) else None
    if not isinstance(params, Sequence) or isinstance(params, str) or not isinstance(returns, str):
        raise BadSuite(f"{field} must be a Python definition or an object with params and returns, got {shown(value)}")
    types: list[Any] = [param.get("type") if isinstance(param, Mapping) else param for param in params]
    if not all(isinstance(each, str) for each in types):
        raise BadSuite(f"{field}.params must be a list of types, got {shown(params)}")
    return Signature(tuple(map(_reduce, types)), _reduce(returns))


def signature_of_stub(stub: str, name: str) -> Signature | None:
    """Return the types that Python text annotates a function with; None where it does not define that."""
    # Starter code has no body.
    text = stub.rstrip()
    bodies = ("", " ...", "\n    ...", "\n        ...", ": ...")
    tree = next((tree for body in bodies if (tree := parse(text + body)) is not None), None)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.FunctionDef) and node.name == name:
            args = [arg for arg in node.args.args if arg.arg not in ("self", "cls")]
            params = tuple(_reduce(ast.unparse(arg.annotation)) if arg.annotation else "" for arg in args)
            signature = Signature(params, _reduce(ast.unparse(node.returns)) if node.returns else "")
            return signature if any(params) or signature.returns else Signature()
    return None


def signature_of_comment(source: str) -> Signature:
    """Return the types that the comment above a JavaScript function states (JSDoc)."""
    returns = _JSDOC_RETURN.search(source)
    return Signature(tuple(map(_reduce, _JSDOC_PARAM.findall(source))), _reduce(returns[1]) if returns else "")


def _reduce(written: str) -> str:
    node = _NODE.search(written)
    if node is not None:
        return f"{node[1]}[]" if _NODE_LIST.search(written) else node[1]
    return VOID if written.strip().strip("'\"") in ("void", "None") else ""
