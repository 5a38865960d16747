"""The package as a whole."""

from __future__ import annotations

import subprocess
import sys

import truegold.verifiers.audit as package


def test_public_names_exist_and_stand_once() -> None:
    assert len(set(package.__all__)) == len(package.__all__)
    assert all(hasattr(package, name) for name in package.__all__)


def test_the_verifiers_do_not_import_their_audit_and_the_audit_imports_nothing_heavy(tmp_path) -> None:
    code = (
        "import sys, truegold.verifiers; assert 'truegold.verifiers.audit' not in sys.modules\n"
        "import truegold.verifiers.audit\n"
        "print(sorted({'torch', 'sympy', 'numpy', 'polars', 'pydantic', 'pytest'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
