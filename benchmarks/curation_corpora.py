"""Rows of the corpora that rules are measured on, as cleaning leaves them.

    for row in rows("aqua_stems", DATA_DIR / "curation"): ...

A corpus is a file and a function from a line to prompt, gold and solution. Multiple choice is taken twice: with its
options under the stem, and as the stem alone with the right option's text as gold.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from truegold.pipeline.clean.stage import Cleaner, clean_row
from truegold.pipeline.config.stages import CleanConfig
from truegold.pipeline.tables.rows import Row, row_id
from truegold.verifiers.columns import last_boxed

Fields = tuple[str, str | None, str | None]
"""Prompt, gold and solution."""
Read = Callable[[dict[str, Any]], Fields | None]

_LABEL = re.compile(r"^\s*\(?([A-Z])\)\s?")


def _columns(prompt: str, gold: str | None = None, solution: str | None = None) -> Read:
    def read(line: dict[str, Any]) -> Fields:
        value = line[gold] if gold else "1"
        return (
            line[prompt],
            ", ".join(map(str, value)) if isinstance(value, list) else str(value),
            line.get(solution or ""),
        )

    return read


def _boxed(line: dict[str, Any]) -> Fields:
    return line["problem"], last_boxed(line["solution"]), line["solution"]


def _choice(stem: str, options: list[str], letter: str, solution: str | None, whole: bool) -> Fields | None:
    texts = [_LABEL.sub("", option) for option in options]
    if len(letter) != 1:
        return None
    index = ord(letter) - ord("A")
    if not whole:
        return (stem, texts[index], solution) if 0 <= index < len(texts) else None
    listed = "\n".join(f"({chr(ord('A') + position)}) {text}" for position, text in enumerate(texts))
    return f"{stem}\n{listed}", letter, solution


def _aqua(whole: bool) -> Read:
    return lambda line: _choice(line["question"], line["options"], line["correct"], line["rationale"], whole)


def _agieval(whole: bool) -> Read:
    def read(line: dict[str, Any]) -> Fields | None:
        stem = f"{line['passage']}\n{line['question']}" if line["passage"] else line["question"]
        return _choice(stem, line["options"], line["label"], (line.get("other") or {}).get("solution"), whole)

    return read


def _agieval_open(line: dict[str, Any]) -> Fields:
    return line["question"], line["answer"], line["other"]["solution"]


def _responses(corpus: str) -> Read:
    """Read what a model answered as the row's solution; the file has no prompts."""
    return lambda line: ("", line["gold"], line["response"]) if line["corpus"] == corpus else None


def _mmlu(line: dict[str, Any]) -> Fields | None:
    return _choice(line["question"], ast.literal_eval(line["choices"]), line["gold_original"], None, True)


def _gsm8k_style(prompt: str) -> Read:
    return lambda line: (line[prompt], line["answer"].rpartition("####")[2].strip(), line["answer"])


def _conversation(line: dict[str, Any]) -> Fields:
    return line["prompt"][-1]["content"], line["reward_model"]["ground_truth"], None


def _two_parts(body: str, question: str, gold: str) -> Read:
    return lambda line: (f"{line[body].rstrip('. ')}. {line[question]}", str(line[gold]), None)


CORPORA: dict[str, tuple[str, Read]] = {
    "math_solved": ("math_test_5000", _boxed),
    "math_train": ("math_train_7474", _columns("problem", "answer")),
    "gsm8k": ("gsm8k_train", _columns("question", "answer", "solution")),
    "olympiad": ("olympiad_bench_675", _columns("problem", "answer")),
    "college": ("qwen_college_math", _columns("question", "answer")),
    "harp_proofs": ("harp_proofs", _columns("problem")),
    "ape210k": ("ape210k_valid", _columns("original_text", "ans")),
    "cmath": ("qwen_cmath", _columns("question", "answer")),
    "carp": ("qwen_carp_en", _columns("content", "answer", "steps")),
    "aqua": ("aqua_dev", _aqua(True)),
    "aqua_stems": ("aqua_test", _aqua(False)),
    "sat": ("agieval_sat-math", _agieval(True)),
    "gaokao": ("agieval_gaokao-mathqa", _agieval(True)),
    "logiqa_stems": ("agieval_logiqa-en", _agieval(False)),
    "mmlu_redux": ("mmlu_redux_helm", _mmlu),
    "umwp": ("umwp", _columns("question")),
    "valimath": ("valimath", _columns("question")),
    "mathtrap": ("mathtrap", _columns("trap_problem")),
    "mip_gsm8k": ("mip_gsm8k", _gsm8k_style("insufficient_question")),
    "bigmath": ("bigmath_tinyv_5k", _conversation),
    "limr": ("limr_math_8k", _columns("prompt", "answer")),
    "minerva": ("minerva_272", _columns("problem", "answer")),
    "gaokao_en": ("qwen_gaokao2023en", _columns("question", "answer")),
    "cloze": ("qwen_gaokao_math_cloze", _columns("question", "answer")),
    "middle_school": ("qwen_cn_middle_school", _columns("question", "answer")),
    "mawps": ("qwen_mawps", _columns("input", "target")),
    "asdiv": ("qwen_asdiv", _two_parts("body", "question", "answer")),
    "svamp": ("svamp", _two_parts("Body", "Question", "Answer")),
    "ape210k_test": ("ape210k_test", _columns("original_text", "ans")),
    "mip_svamp": ("mip_svamp", _columns("insufficient_question", "answer")),
    "gsm_plus": ("gsm_plus_testmini", _columns("question", "answer", "solution")),
    "gsm8k_reviewed": ("gsm8k_platinum", _columns("question", "gold_original", "gold_solution")),
    "gsm8k_reworded": ("gsm8k_test_rephrased", _columns("rephrased")),
    "gsm8k_backward": ("gsm8k_backward", _columns("question", "answer")),
    "gsm_hard": ("gsm_hard", _columns("input", "target")),
    "mip_math": ("mip_math", _columns("question", "answer", "solution")),
    "perturbed": ("math_perturb_hard", _columns("problem", "answer")),
    "aime": ("aime_1983_2023", _columns("problem", "answer")),
    "agieval_math": ("agieval_math", _agieval_open),
    "aqua_whole": ("aqua_test", _aqua(True)),
    "mathcoder_responses": ("../math/responses", _responses("mathcoder_responses")),
    "rho1_responses": ("../math/responses", _responses("rho1_responses")),
    "qwen_responses": ("../math/responses", _responses("qwen_math_cot_responses")),
    "tora_responses": ("../math/responses", _responses("tora_gsm8k_responses")),
}
"""File and reader of each corpus by its name. Files without a gold get the gold "1"."""


def rows(corpus: str, folder: Path) -> Iterator[Row]:
    """Yield the cleaned rows of a corpus in the order of its file."""
    file, read = CORPORA[corpus]
    config = CleanConfig()
    cleaner = Cleaner(config)
    with (folder / f"{file}.jsonl").open(encoding="utf-8") as lines:
        for line_number, text in enumerate(lines, start=1):
            fields = read(json.loads(text))
            if fields is None:
                continue
            prompt, gold, solution = fields
            row: Row = {
                "id": row_id(prompt, gold),
                "prompt": prompt,
                "gold": gold,
                "domain": "math",
                "verifier": "math",
                "verifier_args": "{}",
                "solution": solution,
                "source": corpus,
                "source_row": line_number,
                "split": "train",
                "meta": "{}",
            }
            yield clean_row(row, config, cleaner)[0]
