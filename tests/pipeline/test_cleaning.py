"""The parts of cleaning: what each repairs, and the look-alikes that it leaves alone."""

from __future__ import annotations

import time

import orjson
import pytest
from real_data import real_data
from tables import rows

from truegold.pipeline.clean import EDITS, Boilerplate, clean_prose
from truegold.pipeline.config.stages import CleanConfig
from truegold.pipeline.text.announced_answers import announced_answers, drop_answer_line, gives_away
from truegold.pipeline.text.encodings import misread_as, repair_mojibake
from truegold.pipeline.text.prose import language_of
from truegold.verifiers.answers.choice_arguments import chosen_letters
from truegold.verifiers.answers.gold_types import GOLD_TYPES, TYPE_OF_NODE, gold_note
from truegold.verifiers.extract.listed_options import Options, find_options
from truegold.verifiers.math import tree as t


def cleaned(text):
    edits = clean_prose(text)
    assert {edit.reason for edit in edits} <= set(EDITS)
    return edits[-1].after if edits else text


@rows(
    "text, expected",
    [
        ("AB&nbsp;&lt; 5 &amp; CD &gt; 7", "AB < 5 & CD > 7"),
        ("escaped twice: x &amp;lt; 3", "escaped twice: x < 3"),
        ("&#8804; and &#x3C0; and &times;", "≤ and π and ×"),
        ("the following:<br/>① one<BR>② two", "the following:\n① one\n② two"),
        ("(x-1)<sup>2</sup>+a<sub>n+1</sub>=1", "(x-1)^{2}+a_{n+1}=1"),
        ("the 1<sup>st</sup> of May", "the 1st of May"),
        ('<span style="color:red">Find</span> <b>all</b> <a href="https://x.org/?a=1">values</a>', "Find all values"),
        ("<p>One.</p><p>Two.</p>", "One.\nTwo."),
        ("`<caption>` gives captions to `<table>`.", "`<caption>` gives captions to `<table>`."),
        ("<b>Which</b> one makes a list, `<ul><li>` or `<br/>`?", "Which one makes a list, `<ul><li>` or `<br/>`?"),
        ("```html\n<p>\n  One.\n</p>\n```", "```html\n<p>\n  One.\n</p>\n```"),
        ("``one'' <b>x</b> ``two''", "``one'' x ``two''"),
        ("a lone ` and <b>x</b>", "a lone ` and x"),
        ("<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>", "| a | b |\n| 1 | 2 |"),
        ("if a<b and c>d", "if a<b and c>d"),
        ("where p<q>r or <i> is the index", "where p<q>r or <i> is the index"),
        ('see <img src="x.png"> here', 'see <img src="x.png"> here'),
        ("R&D; AT&T; & more;", "R&D; AT&T; & more;"),
        ("a letter stays: &#97;b and &#59;", "a letter stays: &#97;b and &#59;"),
    ],
)
def test_html_becomes_plain_text_and_inequalities_stay(text, expected):
    assert cleaned(text) == expected


@rows(
    "text, expected",
    [
        ("-\x0crac{1}{2}", r"-\frac{1}{2}"),
        ("2 \times 3 \text{ cm}, \theta, \tan(x)", r"2 \times 3 \text{ cm}, \theta, \tan(x)"),
        ("\x08eta and \x08egin{cases}", r"\beta and \begin{cases}"),
        ("\\left( x \right) \rightarrow", r"\left( x \right) \rightarrow"),
        ("m \neq 0", r"m \neq 0"),
        ("\x0bec{a} \x07lpha", r"\vec{a} \alpha"),
        ("a\ta table\tan apple", "a\ta table\tan apple"),
        ("one\nmid[i] = 2", "one\nmid[i] = 2"),
        ("a common\tfraction, \textra \tbinomials", "a common\tfraction, \textra \tbinomials"),
        ("\textbf{a} \tfrac12", r"\textbf{a} \tfrac12"),
        (r"m \\in (0, 3), \\frac{1}{2}", r"m \in (0, 3), \frac{1}{2}"),
        (r"\\begin{cases} x > a \\\\ x < b \\end{cases}", r"\begin{cases} x > a \\ x < b \end{cases}"),
        (r"as \\overline{z} or $\frac{1}{2}$", r"as \overline{z} or $\frac{1}{2}$"),
        (r"\begin{array}{c} 1 \\ \frac{1}{2} \end{array}", r"\begin{array}{c} 1 \\ \frac{1}{2} \end{array}"),
        (r"first line \\ second line \\to go", r"first line \\ second line \\to go"),
        (r"let $\frac{r}{s}=frac{BC}{AD}$", r"let $\frac{r}{s}=\frac{BC}{AD}$"),
        ("frac{1}{2}sqrt{3}", r"\frac{1}{2}\sqrt{3}"),
        (r"$$frac{\sqrt{3}}{2}$$", r"$$\frac{\sqrt{3}}{2}$$"),
        (r"$frac{x^{2}}{y_{1}} + sqrt{x^{2}+1}$", r"$\frac{x^{2}}{y_{1}} + \sqrt{x^{2}+1}$"),
        ('write $x$ as "sqrt{14}" or "frac{1}{2}"', 'write $x$ as "sqrt{14}" or "frac{1}{2}"'),
        (r"such that:\n(A) 5\n(B) 7\n", "such that:\n(A) 5\n(B) 7"),
        (r"\nu and \neq and \nabla and \nRightarrow", r"\nu and \neq and \nabla and \nRightarrow"),
        (r'what does print("a\n") write?', r'what does print("a\n") write?'),
        ("What is $x$? $", "What is $x$?"),
        (r"$\frac{1}{2}", r"\frac{1}{2}"),
        (r"\frac{1}{2}$", r"\frac{1}{2}"),
        ("It costs $5", "It costs $5"),
        ("What is $x$? He paid 5 $", "What is $x$? He paid 5 $"),
        (r"\(x\) and \[y\]", r"\(x\) and \[y\]"),
    ],
)
def test_latex_is_repaired_only_where_one_reading_makes_sense(text, expected):
    assert cleaned(text) == expected


def cut(prompt):
    return Boilerplate(CleanConfig()).cut(prompt)


ASKED = "What is the value of x + 3?"


@pytest.mark.parametrize(
    "prompt",
    [
        f"{ASKED} Please reason step by step, and put your final answer within \\boxed{{}}.",
        f"{ASKED} Let's think step by step and output the final answer within \\boxed{{}}.",
        f'{ASKED} Let\'s think step by step and output the final answer after "####".',
        f"{ASKED}\nPut your final answer in $\\boxed{{}}$.",
        f"{ASKED}\nYour final answer should be given in \\boxed{{answer}}.",
        f"Answer the following question: {ASKED}",
        f"Solve the following math problem step by step. {ASKED}",
        f"Solve the following math problem. Make sure to put the answer (and only answer) in \\boxed{{}}.\n\n{ASKED}",
        "Solve the following math problem step by step. The last line of your response should be of the form Answer: "
        "$Answer (without quotes) where $Answer is the answer to the problem.\n\n"
        f'{ASKED}\n\nRemember to put your answer on its own line after "Answer:".',
        f"**Problem Statement:**\n\n{ASKED}",
        f"### Question:\n{ASKED}\n\n### Response:",
        f"<|im_start|>user\n{ASKED}<|im_end|>\n<|im_start|>assistant",
        f"[INST] {ASKED} [/INST]",
        f"{ASKED}\nAnswer:",
        f"12. {ASKED}",
        f"3. (5 points) {ASKED}",
    ],
)
def test_what_data_sets_put_around_a_problem_is_cut(prompt):
    assert cut(prompt) == ASKED


@rows(
    "prompt",
    [
        f"{ASKED} Express your answer as a common fraction.",
        f"{ASKED} Round your answer to the nearest tenth.",
        f"{ASKED} Enter the letter of the correct option.",
        "Answer the following question with yes or no: is 91 prime?",
        "Solve the following problem without a calculator: what is 17 * 23?",
        "The well-known equation attempts to answer the following question:",
        "3.5 litres of milk cost how much?",
        "1. Find x.\n2. Find y.",
        "How many steps are there, step by step, to the top?",
        "A solution: 5 g of salt in water. What is its share?",
    ],
)
def test_what_decides_the_answer_is_no_boilerplate(prompt):
    assert cut(prompt) == prompt


def test_chinese_boilerplate_is_cut():
    asked = "小明一共有多少个苹果？"
    assert cut(f"{asked}请通过逐步推理来解答问题，并把最终答案放置于\\boxed{{}}中。") == asked
    assert cut(f"题目：{asked}\n答案：") == asked


@rows(
    "prompt, texts",
    [
        ("Which is prime?\n(A) 4\n(B) 7\n(C) 9", ("4", "7", "9")),
        ("Which is prime? A. 4 B. 7 C. 9 D. 1", ("4", "7", "9", "1")),
        ("下列最小的数是（）A．-2 B．0 C．3 D．-1/2", ("-2", "0", "3", "-1/2")),
        (r"is: $\textbf{(A)}\ 1:2\qquad\textbf{(B)}\ 1:3\qquad\textbf{(C)}\ 2:3$", ("1:2", "1:3", "2:3")),
        (r"is $\text{(A) 7 } \qquad \text{(B) 8 } \qquad \text{(C) 9 }$", ("7", "8", "9")),
        (
            r"$\mathrm{\textbf{(A)} \ }226\qquad \mathrm{\textbf{(B)} \ } 243 \qquad \mathrm{(C)} 270$",
            ("226", "243", "270"),
        ),
        ("Pick one.\n(A) red\n(B) blue\n(C) green\nEnter the letter of the correct option.", ("red", "blue", "green")),
        ('[asy] label("$A$", A, A); label("$B$", B, B); [/asy] Then x is\nA) 1\nB) 2\nC) 3', ("1", "2", "3")),
        (r"\[(A) |x| \qquad (B) -|x| \qquad (C) |-x|\]", ("|x|", "-|x|", "|-x|")),
        ("(A) 1 (B) 2 (D) 4", None),
        ("(A) 1 (B) 2", None),
        ("(A) (B) (C)", None),
        ("(A) 1 (B) 1 (C) 2", None),
        ("In triangle $ABC$, $\\tan A = 2$, $B = 3 C$. Find A.", None),
        ('[asy] label("$A$", A, A); label("$B$", B, B); label("$C$", C, C); [/asy] Find x.', None),
    ],
)
def test_options_are_read_where_they_are_whole(prompt, texts):
    options = find_options(prompt)
    assert (None if options is None else options.texts) == texts


@rows(
    "gold, letters",
    [
        ("B", "B"),
        ("(b)", "B"),
        (r"\text{(C)}", "C"),
        ("0.5", "A"),
        (r"\frac12", "A"),
        ("blue", "C"),
        ("A,C", "AC"),
        ("AC", "AC"),
        ("D", None),
        ("CA", None),
        ("7", None),
    ],
)
def test_gold_chooses_an_option_by_letter_or_text(gold, letters):
    assert chosen_letters(Options((r"$\frac{1}{2}$", "2", "blue")), gold) == letters


def test_small_letters_may_be_parts_and_are_chosen_by_letter_only():
    options = find_options("Which is it?\n(a) 4\n(b) 7\n(c) 9")
    assert options is not None
    assert (chosen_letters(options, "B"), chosen_letters(options, "7")) == ("B", None)


@rows(
    "gold, note",
    [
        ("42", ("number", "42")),
        (r"\frac{6}{8}", ("number", "3/4")),
        (r"2\sqrt{3}", ("number", "2*3^(1/2)")),
        ("x^2 + 1", ("expression", "(x^(2) + 1)")),
        ("x = 5", ("equation", "x = 5")),
        (r"x \le 5", ("inequality", "x <= 5")),
        ("1, 2, 3", ("list", "1, 2, 3")),
        (r"\{1, 2\}", ("set", "{1, 2}")),
        ("[0, 1)", ("interval", "[0, 1)")),
        (r"(-\infty, 1) \cup (2, \infty)", ("interval", None)),
        ("(1, 2)", ("tuple", "(1, 2)")),
        (r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", ("matrix", "[1; 2]")),
        ("2:3", ("ratio", "2:3")),
        ("101_2", ("number_in_base", "101 base 2")),
        ("3:30 p.m.", ("time", "3:30 pm")),
        ("5 March", ("date", "?-3-5-?")),
        (r"x \equiv 3 \pmod{5}", ("congruence", "x = 3 mod 5")),
        (r"25\%", ("percentage", "25 %")),
        (r"2\text{ hours}", ("quantity", "7200 s")),
        ("12 apples", ("quantity", "12")),
        ("Yes", ("truth", "yes")),
        (r"\text{false}", ("truth", "false")),
        ("(B)", ("choice", "B")),
        ("always", ("text", "always")),
        ("Anna is correct.", ("text", None)),
        (r"\frac{1}{", ("unreadable", None)),
    ],
)
def test_golds_are_typed_and_normalised(gold, note):
    noted = gold_note(gold, "math")
    assert noted is not None
    assert noted[0] in GOLD_TYPES
    assert noted == note or (note[1] is None and noted[0] == note[0])


def test_every_class_of_trees_has_a_type():
    classes = {value for value in vars(t).values() if isinstance(value, type) and issubclass(value, t.Node)}
    looked_into = {t.Measure, t.Group, t.Chain, t.SetOps, t.Named, *t.VALUES}
    assert classes - {t.Node} == looked_into | set(TYPE_OF_NODE)
    assert set(TYPE_OF_NODE.values()) <= set(GOLD_TYPES)


def test_no_gold_has_no_type_and_other_verifiers_know_their_own():
    assert gold_note(None, "math") is None
    assert gold_note("^[a-z]+$", "regex") == ("text", None)
    assert gold_note("blue", "choice", ["red", "blue", "green"]) == ("choice", "B")


@rows(
    "prompt, code",
    [
        ("How many apples does Ann have if she buys three more?", "en"),
        ("小明有 3 个苹果", "zh"),
        ("计算 $\\int x dx$ 的值", "zh"),
        ("りんごはいくつありますか", "ja"),
        ("사과가 몇 개 있습니까?", "ko"),
        ("Wie viele Äpfel hat Anna, wenn sie drei weitere kauft?", "de"),
        ("Сколько яблок у Анны, если она купит ещё три?", "ru"),
        ("$x^2 = 4$", "und"),
        ("Compute $\\sqrt{54}\\cdot\\sqrt{32}$.", "und"),
        ("How many times is the character 们 written in a text of this length?", "en"),
    ],
)
def test_the_language_of_a_prompt(prompt, code):
    assert language_of(prompt) == code


@rows(
    "prompt, gold, expected",
    [
        ("What is 6*7?\nAnswer: 42", "42", "What is 6*7?"),
        ("What is 6*7?\n\n**Answer:** $42$.", "42.0", "What is 6*7?"),
        ("What is 6*7?\n#### 1,042", "1042", "What is 6*7?"),
        ("6乘7等于多少呢？\n答案：42。", "42", "6乘7等于多少呢？"),
        ("What is 6*7?\nAnswer: 41", "42", None),
        ("What is 6*7?\nAnswer: 42 or 43?", "42", None),
        ("What is 6*7? Answer: 42", "42", None),
        ("1+1?\nAnswer: 2", "2", None),
    ],
)
def test_a_last_line_that_is_the_answer_is_cut(prompt, gold, expected):
    assert drop_answer_line(prompt, gold, minimum=8) == (prompt if expected is None else expected)


def test_an_announced_answer_is_compared_whole():
    def leaks(prompt, gold):
        return any(gives_away(announced, gold) for announced in announced_answers(prompt))

    assert leaks("The answer is 42, as you know.", "42")
    assert leaks("The final answer is \\frac{1}{2}. I hope it is correct.", "\\frac{1}{2}")
    assert not leaks("The answer is 42.5.", "42")
    assert not leaks("Put it in \\boxed{} or \\boxed{\\ldots}.", "42")


ATTACKS = [
    "&amp;" * 20_000,
    "&" + "amp;" * 20_000 + "lt;",
    "<" * 100_000,
    "<b" * 20_000 + ">" * 20_000,
    "<p a=a " * 10_000,
    "<sup>" * 20_000,
    "$" * 50_000 + "frac",
    "\\(" * 30_000 + "sqrt",
    "\\\\" * 30_000 + "frac",
    "\\n" * 40_000,
    "(A) " * 20_000,
    "A. B. C. " * 5_000,
    "Answer: " * 10_000 + "42",
    "\\boxed{" * 10_000,
    "Question: " * 8_000,
    "let's think step by step. " * 3_000,
    "\\textbf{" * 10_000 + "(A)",
    "frac{" * 20_000,
    "1. " * 20_000,
]


@rows("attack", ATTACKS)
def test_no_text_keeps_the_cleaning_busy(attack):
    started = time.process_time()
    clean_prose(attack)
    cut(attack[:20_000])
    find_options(attack)
    list(announced_answers(attack))
    language_of(attack)
    gold_note(attack[:2_000], "math")
    assert time.process_time() - started < 4.0


def test_human_made_problems_are_not_edited_beyond_whitespace():
    edited = [
        edit.reason
        for line in real_data("curation/gsm8k_train.jsonl").read_bytes().splitlines()
        for edit in clean_prose(orjson.loads(line)["question"])
        if edit.reason not in ("whitespace", "unicode")
    ]
    assert edited == []


@pytest.mark.parametrize("charset", ["latin-1", "cp1252", "cp1251", "mac_roman", "cp437"])
def test_text_that_was_read_in_a_wrong_character_set_is_repaired(charset):
    pytest.importorskip("ftfy", reason="needs the package ftfy, of the extra `curate`")
    text = "It’s 5 km – the café’s price is €5. Let α≤3."
    damaged = text.encode().decode(charset, "replace")
    edits = clean_prose(damaged)
    assert (edits[0].reason, edits[0].after) == ("mojibake", text)


@pytest.mark.parametrize(
    "text", ["Le Châtelier’s café in Århus", "x ∈ [–π/2, π]", "两只熊猫4天吃了56千克竹子", "Ça va, Élodie?"]
)
def test_accents_and_other_scripts_are_no_mojibake(text):
    assert repair_mojibake(text) == text
    assert misread_as(text) is None


@rows(
    "text",
    [
        "Question 3: How many apples has Tom?",
        "1. Find the largest prime below 40.",
        "How many apples has Tom? Please reason step by step, and put your final answer within \\boxed{}.",
        "How many apples has Tom?\nAnswer:",
        "小明有几个苹果？请一步一步推理，并把最终答案放在\\boxed{}中。",
        "\u3000问题：小明有几个苹果？",
        "How many apples has Tom?\x0bThink step by step.",
        "Write 3:4 as a fraction.",
    ],
)
def test_a_glance_at_boilerplate_never_overlooks_any(text: str) -> None:
    glancing, thorough = Boilerplate(CleanConfig()), Boilerplate(CleanConfig())
    assert glancing._may_cut is not None
    thorough._may_cut = None
    assert glancing.cut(text) == thorough.cut(text)


def test_patterns_that_re2_reads_otherwise_are_tried_one_by_one() -> None:
    for pattern in (r"Task\b: ", r"(Q|A)\1: ", r"(?i:task): ", r"^Task: "):
        assert Boilerplate(CleanConfig(boilerplate=(pattern,)))._may_cut is None
