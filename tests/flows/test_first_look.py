"""`truegold init` and `truegold look` read a file in any of its shapes, say how, and what would be held back."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
import yaml
from command_line import run_command

from truegold.flows.config import load_config
from truegold.pipeline.sources.proposal import columns_by_texts

SUMS = [(number, number + 4) for number in range(3, 15)]


def write_lines(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def german(folder: Path) -> str:
    rows = [
        f'{a};"Anna hat {a} Äpfel; sie bekommt {b} dazu. Wie viele hat sie?";"{a} + {b} = {a + b}";{a + b};{a % 3}'
        for a, b in SUMS
    ]
    (folder / "umfrage.csv").write_text("\n".join(["Nr;Aufgabe;Lösungsweg;Ergebnis;Klasse", *rows]), "utf-8-sig")
    return "umfrage.csv"


def verl(folder: Path) -> str:
    rows = [
        {
            "data_source": "sums",
            "prompt": [{"role": "user", "content": f"What is {a} + {b}?"}],
            "reward_model": {"style": "rule", "ground_truth": str(a + b)},
            "extra_info": {"index": a},
        }
        for a, b in SUMS
    ]
    pl.DataFrame(rows).write_parquet(folder / "verl.parquet")
    return "verl.parquet"


def packed(folder: Path) -> str:
    (folder / "packed").mkdir()
    for part in range(2):
        lines = [json.dumps({"question": f"What is {a} + {b}?", "answer": a + b}) + "\n" for a, b in SUMS[part::2]]
        with pa.CompressedOutputStream(str(folder / "packed" / f"part-{part}.jsonl.zst"), "zstd") as file:
            file.write("".join(lines).encode())
    return "packed"


def mbpp(folder: Path) -> str:
    write_lines(
        folder / "mbpp.jsonl",
        [
            {
                "task_id": a,
                "text": f"Write a function add_{a} that adds {a} to a number.",
                "code": f"def add_{a}(n):\n    return n + {a}",
                "test_list": [f"assert add_{a}({b}) == {a + b}", f"assert add_{a}(0) == {a}"],
            }
            for a, b in SUMS
        ],
    )
    return "mbpp.jsonl"


def letters(folder: Path) -> str:
    write_lines(
        folder / "letters.jsonl",
        [{"question": f"Which is {a} + {b}?", "answer": "ABCD"[a % 4], "note": "easy"} for a, b in SUMS],
    )
    return "letters.jsonl"


def names(folder: Path) -> str:
    writers = ("Jane Austen", "Mark Twain", "Leo Tolstoy")
    write_lines(
        folder / "names.jsonl", [{"question": f"Who wrote book {a}?", "answer": writers[a % 3]} for a, _ in SUMS]
    )
    return "names.jsonl"


@pytest.mark.parametrize(
    ("write", "columns", "shown"),
    [
        (
            german,
            "prompt Aufgabe; gold Ergebnis; solution Lösungsweg; id Nr; verifier math",
            "math      reads it as 10",
        ),
        (verl, "prompt prompt; gold reward_model.ground_truth; verifier math", 'pays the response "\\boxed{10}"'),
        (packed, "prompt question; gold answer; verifier math", "prompt    What is 3 + 7?"),
        (mbpp, "prompt text; solution code; id task_id; test_list as code; verifier code", "own solution passes"),
        (letters, "prompt question; gold answer; verifier choice", "choice    reads it as D"),
        (names, "prompt question; gold answer; verifier exact", 'exact     pays the response "Jane Austen"'),
    ],
)
def test_init_says_how_a_file_is_read_and_what_it_writes_curates_it(
    write: object, columns: str, shown: str, tmp_path: Path
) -> None:
    assert callable(write)
    data = write(tmp_path)
    done = run_command("init", data, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"columns   {columns}" in done.stdout
    assert shown in done.stdout
    assert done.stdout.count("  prompt    ") == 3
    assert done.stdout.endswith("next: truegold curate run.yaml --engine local\n")
    settings = yaml.safe_load((tmp_path / "run.yaml").read_text())
    assert settings.keys() == {"name", "data"}
    curated = run_command("curate", "run.yaml", "--engine", "local", "--max-held", "0", cwd=tmp_path)
    assert curated.returncode == 0, curated.stderr
    assert "truegold export runs/run --format trl --out SET" in curated.stderr


def test_init_writes_training_where_it_is_asked_for(tmp_path: Path) -> None:
    data = names(tmp_path)
    assert run_command("init", data, "mine.yaml", "--train", "--model", "a/b", cwd=tmp_path).returncode == 0
    config = load_config(tmp_path / "mine.yaml")
    assert config.name == "mine"
    assert config.chat.user.endswith("\\boxed{}.")
    assert config.train is not None
    assert config.model is not None


def test_init_takes_all_rows_of_a_large_file(tmp_path: Path) -> None:
    rows = [{"question": f"What is {a} + 1?", "answer": a + 1} for a in range(20_001)]
    write_lines(tmp_path / "large.jsonl", rows)
    done = run_command("init", "large.jsonl", cwd=tmp_path)
    assert "large.jsonl: 20,001 records" in done.stdout
    assert "  limit:" not in (tmp_path / "run.yaml").read_text()


@pytest.mark.parametrize(
    ("heads", "row", "expected"),
    [
        ("enunciado respuesta tema", ("Calcula el doble de {a}.", "{b}", "álgebra"), ("enunciado", "respuesta")),
        ("Задача Ответ", ("Сколько будет {a} плюс {b}?", "{a}{b}"), ("Задача", "Ответ")),
        ("no 질문 정답", ("{a}", "{a} 더하기 {b}는 얼마입니까?", "{b}{a}"), ("질문", "정답")),
        (
            "énoncé corrigé valeur",
            ("Combien font {a} et {b} ?", "On ajoute {a}, ce qui fait {b}", "{b}"),
            ("énoncé", "valeur"),
        ),
    ],
)
def test_columns_are_found_by_their_texts_in_any_language(
    heads: str, row: tuple[str, ...], expected: tuple[str, str]
) -> None:
    samples = [dict(zip(heads.split(), (text.format(a=a, b=b) for text in row), strict=True)) for a, b in SUMS]
    found = columns_by_texts(samples)
    assert found is not None
    assert found.prompt is not None
    assert found.gold is not None
    assert (found.prompt.column, found.gold.column) == expected


@pytest.mark.parametrize("answer", ["Antwort", "Wert"])
@pytest.mark.parametrize("numbers", [[1, 2, 4, 5, 6, 9, 10, 12], [11, 21, 25, 3, 8, 17, 2, 30]])
def test_a_running_number_with_gaps_or_out_of_order_is_no_gold(answer: str, numbers: list[int]) -> None:
    prices = ["2,25", "2,25", "4,70", "5,95", "14,10", "2,25", "7,80", "15"]
    samples = [
        {"Frage": f"Was kosten {n} Brötchen zu je 75 Cent?", answer: price, "Nr": n}
        for n, price in zip(numbers, prices, strict=True)
    ]
    found = columns_by_texts(samples)
    assert found is not None
    assert found.gold is not None
    assert found.gold.column == answer


def test_rising_numbers_of_any_name_are_no_gold_where_another_column_answers() -> None:
    samples = [{"Aufgabe": f"Was ist {n} mal 3?", "Blatt": n * n, "Wert": n % 5 * 3} for n in range(4, 12)]
    found = columns_by_texts(samples)
    assert found is not None
    assert found.gold is not None
    assert found.gold.column == "Wert"


@pytest.mark.parametrize(
    "name", ["Lösung", "LOSUNG", "Réponse", "solución", "risposta", "Ответ", "sonuç", "答え", "정답"]
)
def test_a_column_called_answer_in_other_languages_is_gold(name: str) -> None:
    samples = [{"q1": f"Item {n}: what holds here?", "x": n * 7 % 11, name: n % 3} for n in range(8)]
    found = columns_by_texts(samples)
    assert found is not None
    assert found.gold is not None
    assert found.gold.column == name


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("init nothing.jsonl", "nothing.jsonl does not exist"),
        ("init mine.yaml", "The data come first: truegold init DATA mine.yaml"),
        ("init numbers.csv", "Its columns: x, y. Name them: --prompt-column COLUMN --gold-column COLUMN"),
        ("look asked.jsonl", "the problems are in 'question', and no column of answers is found"),
        ("look joined.jsonl", 'Split them into two columns: {"question": ..., "answer": ...}'),
        ("look system.jsonl", "missing_prompt: column 'prompt' has no user message with text.\n"),
        ("init names.jsonl --gold-column nam", "has no column 'nam'"),
        ("init names.jsonl --verifier maths", "Did you mean 'math'?"),
        ("init prose.jsonl", "rejected  of the first 12 records: 12 gold_is_prose"),
        ("look noise.jsonl", "none of its 3 rows can be used; the first is line 1: invalid_json"),
        ("init header.csv", "header.csv has no records. A CSV file needs lines after its header."),
    ],
)
def test_what_cannot_be_read_is_said(arguments: str, line: str, tmp_path: Path) -> None:
    names(tmp_path)
    (tmp_path / "numbers.csv").write_text("x,y\n1,2\n3,4\n")
    (tmp_path / "noise.jsonl").write_text("a\nb\nc\n")
    write_lines(tmp_path / "asked.jsonl", [{"question": f"What is {a} plus 4, in dozens?"} for a, _ in SUMS])
    write_lines(tmp_path / "joined.jsonl", [{"text": f"### Question: {a} + 4?\n### Answer: {b}"} for a, b in SUMS])
    system = [{"role": "system", "content": "Be good."}]
    write_lines(tmp_path / "system.jsonl", [{"prompt": system, "answer": b} for _, b in SUMS])
    (tmp_path / "header.csv").write_text("question,answer\n")
    prose = "We add the first to the second, and then it follows that the sum is even"
    write_lines(tmp_path / "prose.jsonl", [{"question": f"Why is {a} even?", "answer": prose} for a, _ in SUMS])
    done = run_command(*arguments.split(), cwd=tmp_path)
    assert done.returncode in (2, 3)
    assert line in done.stderr
    assert not (tmp_path / "run.yaml").exists()


def test_look_tells_what_a_file_holds_and_its_worst_rows_and_writes_nothing(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {
            "question": f"Tom has {a} pens and gets {b}. How many has he?",
            "solution": f"The answer is {a + b}.",
            "answer": a + b,
        }
        for a, b in SUMS
    ]
    rows[4]["answer"] = 99
    rows.append({"question": "Is 91 a prime number?", "solution": "The answer is no.", "answer": "no"})
    write_lines(tmp_path / "pens.jsonl", rows)
    done = run_command("look", "pens.jsonl", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "languages 12 en" in done.stdout
    assert "golds     12 number, 1 truth; judged by 12 math, 1 choice" in done.stdout
    assert "held      1 of 13 rows would wait for a person" in done.stdout
    assert "pens.jsonl:5  solution_contradicts_gold" in done.stdout
    assert "gold 99; suggested 18" in done.stdout
    assert "pens.jsonl:13  yes_no_answer" in done.stdout
    assert done.stdout.endswith("nothing was written; next: truegold init pens.jsonl\n")
    assert [path.name for path in tmp_path.iterdir()] == ["pens.jsonl"]


def test_a_run_that_holds_rows_back_says_how_to_go_on(tmp_path: Path) -> None:
    write_lines(
        tmp_path / "one.jsonl",
        [
            {"question": "Is 91 a prime number?", "answer": "no"},
            {"question": "Tom has 3 pens and gets 4. How many has he?", "answer": "7"},
        ],
    )
    done = run_command("curate", "one.jsonl", "--engine", "local", cwd=tmp_path)
    assert "  decide about 1 held row     truegold review runs/one\n" in done.stderr
    assert "  then, with the decisions    truegold curate one.jsonl --engine local\n" in done.stderr


def test_a_run_says_how_many_rows_stay_with_a_flag(tmp_path: Path) -> None:
    records = [
        {"question": "Tom has 3 pens and gets 4. How many has he?", "answer": "7", "solution": "3 + 4 = 8"},
        {"question": "Ann has 5 pens and gets 4. How many has she?", "answer": "9", "solution": "5 + 4 = 9"},
    ]
    write_lines(tmp_path / "one.jsonl", records)
    command = ["curate", "one.jsonl", "--engine", "local", "--set", "data.columns.solution=solution"]
    told = run_command(*command, cwd=tmp_path).stderr
    assert "  look at 1 row that stays with a flag  truegold review runs/one\n" in told
    run_command("decide", "one.jsonl:1", "keep", cwd=tmp_path)
    assert "stays with a flag" not in run_command(*command, cwd=tmp_path).stderr


def prices(path: Path, golds: list[str]) -> None:
    asked = "Tom kauft {} Hefte zu je 75 Cent und bezahlt an der Kasse. Wie viel Euro kostet das?"
    path.write_text("\n".join(["Aufgabe;Ergebnis", *(f"{asked.format(n)};{gold}" for n, gold in enumerate(golds, 3))]))


def test_golds_with_decimal_commas_are_proposed_as_such_and_become_points(tmp_path: Path) -> None:
    prices(tmp_path / "preise.csv", [*(f"{number},{number}5" for number in range(1, 9)), "12"])
    output = run_command("init", "preise.csv", cwd=tmp_path).stdout
    assert "commas    decimal: 1,15 is read as 1.15; answers may have a comma or a point" in output
    assert yaml.safe_load((tmp_path / "run.yaml").read_text())["data"]["verifier_args"] == {"comma": "decimal"}
    run_command("curate", "run.yaml", "--engine", "local", cwd=tmp_path)
    curated = pl.read_parquet(tmp_path / "runs" / "run" / "settle" / "rows.parquet")
    assert curated["gold"].to_list() == [*(f"{number}.{number}5" for number in range(1, 9)), "12"]
    edits = pl.read_parquet(tmp_path / "runs" / "run" / "clean" / "ledger.parquet")
    assert sorted(edits.filter(reason="decimal_comma")["source_row"].unique()) == list(range(2, 10))
    assert set(curated["verifier_args"]) == {'{"comma":"answers"}'}
    told = run_command("explain", "preise.csv:2", cwd=tmp_path).stdout
    assert "edit decimal_comma" in told


def test_golds_that_may_be_thousands_are_said_and_not_guessed(tmp_path: Path) -> None:
    prices(tmp_path / "preise.csv", [f"{number},{number}50" for number in range(1, 9)])
    output = run_command("init", "preise.csv", cwd=tmp_path).stdout
    assert "if 1,150 means 1.150, set data.verifier_args: {comma: decimal}" in output
    assert "verifier_args" not in yaml.safe_load((tmp_path / "run.yaml").read_text())["data"]


def test_points_before_thousands_are_proposed_as_such_where_problems_have_them(tmp_path: Path) -> None:
    rows = [f"Wie viele Schrauben sind in {n} Kisten zu je 1.250 Stück?;{n}.{n}50" for n in range(2, 9)]
    (tmp_path / "mengen.csv").write_text("\n".join(["Aufgabe;Ergebnis", *rows]))
    output = run_command("init", "mengen.csv", cwd=tmp_path).stdout
    assert "commas    decimal: 2.250 is read as 2250" in output
    assert yaml.safe_load((tmp_path / "run.yaml").read_text())["data"]["verifier_args"] == {"comma": "decimal"}


def test_points_before_thousands_are_said_where_problems_have_none(tmp_path: Path) -> None:
    prices(tmp_path / "mengen.csv", [f"{number}.150" for number in range(1, 15)])
    output = run_command("look", "mengen.csv", cwd=tmp_path)
    assert (
        "golds such as 1.150 are decimals, as in English; if 1.150 means 1150, set data.verifier_args" in output.stdout
    )
    assert "rounding: measured" not in output.stderr


def test_a_file_in_another_encoding_is_converted_first(tmp_path: Path) -> None:
    rows = [f"Was kosten {n} Brötchen?;{n},25;{n}" for n in range(1, 9)]
    (tmp_path / "alt.csv").write_text("\n".join(["Frage;Antwort;Nr", *rows, "Was ist 1 + 1?;2;9"]), "cp1252")
    done = run_command("init", "alt.csv", cwd=tmp_path)
    assert done.returncode != 0
    assert "alt.csv: the text of 8 of the first 9 records is not UTF-8." in done.stderr
    assert "iconv -f windows-1252 -t utf-8 alt.csv > alt-utf8.csv" in done.stderr
    assert not (tmp_path / "run.yaml").exists()


def test_a_row_of_each_kind_is_shown_of_a_file_that_is_sorted(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"question": f"What is {n} + {n}?", "answer": 2 * n} for n in range(300)]
    rows += [{"question": f"Which is {n}?\nA. {n}\nB. {n + 1}\nC. {n + 5}", "answer": "A"} for n in range(100)]
    write_lines(tmp_path / "sorted.jsonl", rows)
    output = run_command("init", "sorted.jsonl", cwd=tmp_path).stdout
    assert "verifier math, choice\n" in output
    assert "sorted.jsonl:301\n  prompt    Which is 0?" in output
    assert "verifier math, choice\n" in run_command("curate", "run.yaml", "--dry-run", cwd=tmp_path).stdout


def test_a_misspelt_column_of_tests_keeps_its_solutions(tmp_path: Path) -> None:
    data = mbpp(tmp_path)
    text = (tmp_path / data).read_text()
    (tmp_path / data).write_text(text.replace('"test_list"', '"test_lst"'))
    output = run_command("init", data, cwd=tmp_path).stdout
    assert "columns   prompt text; solution code; id task_id; tests test_lst; verifier code" in output
    assert "own solution passes" in output
    (tmp_path / "named.yaml").write_text(f"data: {{path: {data}, columns: {{prompt: text, tests: test_lst}}}}")
    assert "solution code" in run_command("curate", "named.yaml", "--dry-run", cwd=tmp_path).stdout


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("look preise.csv --prompt-column Afugabe", "no column 'Afugabe' (columns.prompt). Did you mean 'Aufgabe'?"),
        ("init preise.csv --gold-column Ergebniss", "no column 'Ergebniss' (columns.gold). Did you mean 'Ergebnis'?"),
        ("verify --input told.jsonl --output v.csv --response-column respons", "Did you mean 'response'?"),
        ("export preisse.csv --format trl --out out", "Did you mean 'preise.csv'?"),
        ("export runs/preis --format trl --out out", "Did you mean 'runs/preise'?"),
        ("report runs/preis", "Did you mean 'runs/preise'?"),
        ("curate preise.yml", "Did you mean 'preise.yaml'?"),
        ("curate preise.yaml", "comma is 'dezimal', expected one of auto, decimal, answers.\n"),
    ],
)
def test_a_misspelt_name_is_answered_with_the_nearest(arguments: str, line: str, tmp_path: Path) -> None:
    prices(tmp_path / "preise.csv", [f"{number},5" for number in range(1, 9)])
    write_lines(tmp_path / "told.jsonl", [{"question": "1 + 1?", "gold": "2", "response": "2"}])
    (tmp_path / "runs" / "preise").mkdir(parents=True)
    (tmp_path / "preise.yaml").write_text(
        "data: {path: preise.csv, columns: {prompt: Aufgabe, gold: Ergebnis}, verifier_args: {comma: dezimal}}"
    )
    done = run_command(*arguments.split(), cwd=tmp_path)
    assert done.returncode != 0
    assert line in done.stderr


def test_the_header_of_a_csv_file_is_no_row(tmp_path: Path) -> None:
    prices(tmp_path / "preise.csv", [f"{number},5" for number in range(1, 9)])
    run_command("init", "preise.csv", cwd=tmp_path)
    run_command("curate", "run.yaml", "--engine", "local", cwd=tmp_path)
    told = run_command("explain", "preise.csv:1", cwd=tmp_path)
    assert "It has 8 rows of preise.csv, preise.csv:2 to preise.csv:9. Line 1 of CSV names the columns." in told.stderr


@pytest.mark.parametrize(
    ("name", "record", "line"),
    [
        (
            "null.jsonl",
            {"question": "?", "answer": None, "target": 5},
            "answer (empty in 12 of the first 12 records; gold is read from target)",
        ),
        (
            "text.jsonl",
            {"Frage": "?", "Lösung": "", "Wert": 5},
            "Lösung (empty in 12 of the first 12 records; gold is read from Wert)",
        ),
        (
            "asked.jsonl",
            {"question": "", "problem": "?", "answer": 5},
            "question (empty in 12 of the first 12 records; prompt is read from problem)",
        ),
    ],
)
def test_a_column_that_is_passed_over_because_it_is_empty_is_said(
    name: str, record: dict[str, object], line: str, tmp_path: Path
) -> None:
    asked = "Tom has {} pens and gets {}. How many has he?"
    rows = [{k: asked.format(a, b) if v == "?" else a + b if v == 5 else v for k, v in record.items()} for a, b in SUMS]
    write_lines(tmp_path / name, rows)
    assert f"unused    {line}" in run_command("init", name, cwd=tmp_path).stdout


def test_rejects_are_shown_with_their_remedies(tmp_path: Path) -> None:
    rows = [
        {"question": f"What is {a} + {b}?", "answer": a + b if a == SUMS[0][0] else "", "result": a + b}
        for a, b in SUMS
    ]
    write_lines(tmp_path / "gaps.jsonl", rows)
    told = run_command("init", "gaps.jsonl", cwd=tmp_path).stdout
    assert "missing_gold: column 'answer' is empty. The golds of these rows stand in column 'result'." in told
    assert "--gold-column result\n" in told and "--set" not in told


def test_a_table_without_names_of_columns_is_refused(tmp_path: Path) -> None:
    (tmp_path / "sums.csv").write_text("".join(f"What is {a} + {b}?,{a + b}\n" for a, b in SUMS))
    told = run_command("init", "sums.csv", cwd=tmp_path).stderr
    assert "its first line, which should name the columns, is a record" in told
    assert "Write the names of the columns above it" in told


def test_patterns_are_quoted_and_rows_are_found_by_the_paths_of_their_files(tmp_path: Path) -> None:
    (tmp_path / "shards").mkdir()
    for part, start in enumerate((10, 20)):
        rows = [{"question": f"What is {n} + {start}?", "answer": n + start} for n in range(3)]
        write_lines(tmp_path / "shards" / f"part-{part}.jsonl", rows)
    expanded = run_command("init", "shards/part-0.jsonl", "shards/part-1.jsonl", cwd=tmp_path)
    assert "a pattern in quotes" in expanded.stderr
    assert run_command("look", "shards/*.jsonl", cwd=tmp_path).stdout.endswith("truegold init 'shards/*.jsonl'\n")
    write_lines(tmp_path / "other.jsonl", [{"question": "What is 1 + 1?", "answer": 2}])
    for data in ("shards", "other.jsonl"):
        run_command("curate", data, "--engine", "local", cwd=tmp_path)
    for name in ("shards/part-1.jsonl:2", "part-1.jsonl:2", "shards:5"):
        assert "shards:5 (part-1.jsonl:2)" in run_command("explain", name, cwd=tmp_path).stdout
    told = run_command("explain", "shards/part-1.jsonl:9", cwd=tmp_path).stderr
    assert "It has 3 rows of part-1.jsonl, part-1.jsonl:1 to part-1.jsonl:3." in told
    assert "other.jsonl" not in told
