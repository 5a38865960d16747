"""Right formulas of physics in other spellings are paid; with another sign, factor, exponent or part they are not."""

from __future__ import annotations

import itertools

from tables import rows

from truegold.verifiers import MathVerifier

PROBLEM = "A particle of mass m moves with the speed v in an electric field; find its energy, momentum and frequency."

FORMULAS = [
    ("E", r"\frac{n^2\pi^2\hbar^2}{2mL^2}"),
    ("E^{(1)}_0", r"\frac{3a}{2L} + \frac{\pi^2\hbar^2}{mL^2}"),
    (r"\frac{d\sigma}{d\Omega}", r"\frac{m^2 g^2}{4\pi^2\hbar^4}"),
    (r"\langle x^2 \rangle", r"\frac{\hbar}{2}\left[l(l + 1) - m^2\right]"),
    (r"\Delta\phi", r"\pi + \tan^{-1}\left(\frac{2}{\rho}\right)"),
    (r"k_{\parallel}", r"\frac{\omega}{c} \sqrt{1 - \left( \frac{\omega_p}{\omega} \right)^2}"),
    (r"\mathbf{p}_\perp", r"-\frac{q}{c}\mathbf{A}"),
    (r"\psi(x,t)", r"A e^{i(kx - \omega t)}"),
    (r"\rho_{+}", r"\frac{Q}{4\pi R^2} e^{-t/\tau}"),
    ("E_{j=3}", r"2A\hbar^2 - B"),
    (r"\mathbf{B}", r"\frac{\mu_0 I}{2\pi r} \hat{\boldsymbol{\theta}}"),
    (r"\omega_{\text{th}}", r"\sqrt{\frac{n e^2}{\varepsilon_0 m}}"),
    (r"[\hat x, \hat p]", r"i\hbar"),
    (r"\dot q", r"\frac{p}{m} - \frac{eA}{mc}"),
    ("T", r"1.71 \times 10^5 \, \text{K}"),
    ("Q", r"216\ \text{MeV}"),
]


def spelled(label: str, value: str) -> list[str]:
    """Other spellings of one equation."""
    return [
        rf"{label} = {value}", rf"{label} \approx {value}", rf"W_{{\text{{tot}}}} = {value}.",
        rf"\begin{{aligned}} {label} &= {value}. \end{{aligned}}", rf"{label} = {value} \quad \text{{for }} r > b",
    ]  # fmt: skip


def changed(value: str) -> list[str]:
    """The value with another sign, factor or exponent."""
    mutants = [f"-{value.removeprefix('-')}" if not value.startswith("-") else value[1:], f"2 \\cdot {value}"]
    mutants += [value.replace("^2", "^3", 1), value.replace(" + ", " - ", 1), value.replace(" - ", " + ", 1)]
    mutants += [value.replace(r"\frac{", r"\frac{3", 1), value.replace(r"\pi", "2", 1), value.replace("10^5", "10^4")]
    if " + " in value or " - " in value:
        mutants[0] = f"-\\left({value}\\right)"
        mutants[1] = f"2\\left({value}\\right)"
    return [mutant for mutant in dict.fromkeys(mutants) if mutant != value]


def score(response: str, gold: str) -> float | None:
    return MathVerifier()(f"\\[\\boxed{{{response}}}\\]", gold, problem=PROBLEM, info={"rounding": "measured"}).score


@rows("label, value", FORMULAS)
def test_formula_and_its_mutants(label: str, value: str) -> None:
    gold = f"{label} = {value}"
    assert [answer for answer in [value, *spelled(label, value)] if score(answer, gold) != 1.0] == []
    wrong = [answer for mutant in changed(value) for answer in [mutant, *spelled(label, mutant)]]
    assert len(wrong) >= 10
    assert [answer for answer in wrong if score(answer, gold) == 1.0] == []


@rows("pair", list(itertools.pairwise(FORMULAS)))
def test_parts_and_their_mutants(pair: tuple[tuple[str, str], tuple[str, str]]) -> None:
    (label, value), (other_label, other_value) = pair
    gold = f"{label} = {value}; {other_label} = {other_value}"
    right = f"{label} = {value}", f"{other_label} = {other_value}"
    assert score("}\n\\]\nand\n\\[\n\\boxed{".join(right), gold) == 1.0
    assert (
        score(
            "\\begin{aligned} " + " \\\\ ".join(part.replace(" = ", " &= ", 1) for part in right) + "\\end{aligned}",
            gold,
        )
        == 1.0
    )
    wrong = [(f"{label} = {other_value}", f"{other_label} = {value}"), right[:1], right[1:]]
    wrong += [(f"{label} = {mutant}", right[1]) for mutant in changed(value)]
    wrong += [(right[0], f"{other_label} = {mutant}") for mutant in changed(other_value)]
    paid = [parts for parts in wrong if score("}\n\\]\nand\n\\[\n\\boxed{".join(parts), gold) == 1.0]
    assert paid == []
