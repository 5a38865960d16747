"""Writes the nineteen layouts of this folder and expected.json. All rows were written for this folder.

Run it in any folder: `python make_layouts.py`. All golds and outputs are computed or fixed here.
"""

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
Row = dict[str, Any]
EXPECTED: Row = {}


def put(name: str, card: str, note: str, pairs: list[tuple[Row, Row]]) -> None:
    """A layout: its records, and what is right for each."""
    lines = [json.dumps(record, ensure_ascii=False) for record, _ in pairs]
    (HERE / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    rows = [{"row": n} | want for n, (_, want) in enumerate(pairs, 1)]
    EXPECTED[name] = {"dataset": card, "note": note, "rows": rows}


def row(prompt: str, gold: str | None, verifier: str, **more: Any) -> Row:
    """A row is expected."""
    return {"outcome": "row", "prompt": prompt, "gold": gold, "verifier": verifier} | more


def chosen(prompt: str, options: list[str], letter: str) -> Row:
    """A choice is expected."""
    return row(prompt, letter, "choice", options=options, gold_text=options["ABCDEFGH".index(letter)])


def refused(reason: str, say: str) -> Row:
    """A reject is expected."""
    return {"outcome": "refused", "reason": reason, "say": say}


# --- options as texts with a letter ---------------------------------------------------------------------------------
AQUA = [
    (
        "A pump fills a tank in 6 hours and a second one in 3 hours. In how many hours do both fill it together?",
        ["1", "2", "2.5", "4", "4.5"],
        "B",
        "1/6 + 1/3 = 1/2 of the tank in an hour. So it takes 2 hours.\nAnswer: B",
    ),
    (
        "A shirt costs $40 after a discount of 20%. What did it cost before?",
        ["$44", "$46", "$48", "$50", "$52"],
        "D",
        "0.8 x = 40, x = 50. Answer is D.",
    ),
    (
        "The average of five numbers is 18. Four of them are 10, 20, 25 and 15. Find the fifth.",
        ["18", "19", "20", "21", "22"],
        "C",
        "5 * 18 - 70 = 20. C",
    ),
    (
        "What is the least number that has to be added to 1056 so that 23 divides the sum?",
        ["1", "2", "3", "18", "21"],
        "B",
        "1056 = 45 * 23 + 21, so 2 has to be added.",
    ),
    (
        "A car covers 150 km in 2.5 hours. Its speed is",
        ["50 km/h", "55 km/h", "60 km/h", "65 km/h", "75 km/h"],
        "C",
        "150/2.5 = 60",
    ),
    (
        "If x : y = 3 : 4 and y : z = 8 : 9, then x : z is",
        ["1 : 3", "2 : 3", "3 : 4", "4 : 9", "3 : 2"],
        "B",
        "x : y : z = 6 : 8 : 9",
    ),
    (
        "A box has 3 red and 5 green balls. What is the probability that one drawn at random is red?",
        ["3/8", "5/8", "3/5", "1/3", "2/8"],
        "A",
        "3 of 8",
    ),
    ("What is 15% of 15% of 400?", ["6", "9", "12", "45", "60"], "B", "0.15 * 0.15 * 400 = 9. The answer is B."),
]
put(
    "AQuA_RAT",
    "deepmind/aqua_rat, raw (question, options: texts `A)21`, rationale, correct: a letter)",
    "The letters stand within the texts of `options`. `rationale` ends with the letter and is no gold of its own. "
    "The prompt holds the five options; a gold `B` with verifier math is wrong.",
    [
        (
            {"question": q, "options": [f"{x})" + o for x, o in zip("ABCDE", opts)], "rationale": why, "correct": a},
            chosen(q, opts, a),
        )
        for q, opts, a, why in AQUA
    ],
)

MATHQA = [
    (
        "a train 120 m long crosses a pole in 8 seconds . find its speed in m / sec .",
        ["10", "12", "15", "18", "20"],
        "c",
    ),
    (
        "the price of a book rose from rs . 80 to rs . 100 . the rise in percent is",
        ["20 %", "25 %", "30 %", "15 %", "none"],
        "b",
    ),
    ("how many numbers between 1 and 100 does 9 divide ?", ["9", "10", "11", "12", "13"], "c"),
    (
        "a sum doubles in 8 years at simple interest . the rate per year is",
        ["8 %", "10 %", "12.5 %", "15 %", "16 %"],
        "c",
    ),
    ("the sides of a cuboid are 2 , 3 and 4 . its volume is", ["9", "12", "20", "24", "26"], "d"),
    ("if a + b = 12 and a - b = 4 , what is a * b ?", ["24", "28", "32", "36", "48"], "c"),
    ("the hcf of 36 and 84 is", ["4", "6", "12", "18", "252"], "c"),
    (
        "a sum of rs . 3,000 is shared in the ratio 2 : 3 . the greater share is",
        ["rs . 1,000", "rs . 1,200", "rs . 1,800", "rs . 2,000", "rs . 2,400"],
        "c",
    ),
]
put(
    "MathQA",
    "allenai/math_qa (Problem, Rationale, options: one text, correct: a small letter, annotated_formula, "
    "linear_formula, category)",
    "`options` is one text `a ) 10 , b ) 12 , ...`; in row 8 the options have commas. The gold is a small letter.",
    [
        (
            {
                "Problem": q,
                "Rationale": f'"worked out as usual . answer : {a}"',
                "options": " , ".join(f"{x} ) {o}" for x, o in zip("abcde", opts)),
                "correct": a,
                "annotated_formula": "divide(n0, n1)",
                "linear_formula": "divide(n0,n1)|",
                "category": "general",
            },
            row(q, a.upper(), "choice", options=opts, gold_text=opts["abcde".index(a)], **{"or": {"gold": [a]}}),
        )
        for q, opts, a in MATHQA
    ],
)

OBQA = [
    (
        "A plant that is kept in a dark cupboard will",
        ["grow taller than others", "lack energy", "make more oxygen", "turn into stone"],
        "B",
    ),
    (
        "Which object lets an electric current pass best?",
        ["a rubber glove", "a copper coin", "a dry twig", "a glass bead"],
        "B",
    ),
    (
        "A thermometer in melting ice shows",
        ["0 degrees Celsius", "32 degrees Celsius", "100 degrees Celsius", "-10 degrees Celsius"],
        "A",
    ),
    (
        "An animal with thick white fur most likely lives",
        ["in a rain forest", "in a desert", "near the pole", "in a cave"],
        "C",
    ),
    ("Rubbing your hands together makes them warm because of", ["magnetism", "gravity", "light", "friction"], "D"),
    ("The Moon is seen because", ["it burns", "it reflects the light of the Sun", "it is hot", "it has cities"], "B"),
    ("How many legs has an insect?", ["4", "6", "8", "10"], "B"),
    ("What is likely to weather a rock?", ["rain and frost", "a photograph", "a lullaby", "moonlight"], "A"),
]
put(
    "OpenBookQA",
    "allenai/openbookqa, main (id, question_stem, choices: {text, label}, answerKey)",
    "The question is `question_stem`, `choices` an object of two lists. Row 7 has labels `1` to `4` and a key `2`, "
    "as ARC's and OpenBookQA's relatives have.",
    [
        (
            {
                "id": f"7-{n}",
                "question_stem": q,
                "choices": {"text": opts, "label": list("1234") if n == 6 else list("ABCD")},
                "answerKey": str("ABCD".index(a) + 1) if n == 6 else a,
            },
            chosen(q, opts, a),
        )
        for n, (q, opts, a) in enumerate(OBQA)
    ],
)

MED = [
    ("Which vitamin deficiency causes scurvy?", ["Vitamin A", "Vitamin B1", "Vitamin C", "Vitamin D"], "C"),
    ("The normal number of human chromosomes is", ["23", "44", "46", "48"], "C"),
    ("Insulin is secreted by which cells of the islets?", ["Alpha", "Beta", "Delta", "F cells"], "B"),
    ("Which artery supplies the heart muscle itself?", ["Carotid", "Coronary", "Femoral", "Renal"], "B"),
    ("The largest organ of the human body is the", ["Skin", "Liver", "Lung", "Brain"], "A"),
    ("Normal pH of arterial blood is about", ["6.9", "7.1", "7.4", "7.8"], "C"),
    ("Malaria is transmitted by the bite of female", ["Culex", "Aedes", "Mansonia", "Anopheles"], "D"),
    ("Which nerve is responsible for vision?", ["Optic", "Vagus", "Facial", "Trochlear"], "A"),
]
put(
    "MedMCQA",
    "openlifescienceai/medmcqa (id, question, opa, opb, opc, opd, cop: 0 to 3, choice_type, exp, "
    "subject_name, topic_name)",
    "`cop` counts from 0 and is no gold column by name; options stand in four columns. `exp` may be null.",
    [
        (
            {
                "id": f"m-{n}",
                "question": q,
                "opa": o[0],
                "opb": o[1],
                "opc": o[2],
                "opd": o[3],
                "cop": "ABCD".index(a),
                "choice_type": "single",
                "exp": None if n % 3 == 2 else f"Ans. is '{a.lower()}' i.e., {o['ABCD'.index(a)]}",
                "subject_name": "Medicine",
                "topic_name": None,
            },
            chosen(q, o, a),
        )
        for n, (q, o, a) in enumerate(MED)
    ],
)

USMLE = [
    (
        "A 9-year-old boy has a sore throat, fever and a sandpaper-like rash. What is the best treatment?",
        ["Acyclovir", "Penicillin", "Fluconazole", "Ivermectin"],
        "B",
    ),
    (
        "A 54-year-old man has crushing chest pain, and ST elevation in leads II, III and aVF. Which wall of the heart is affected?",
        ["Anterior", "Lateral", "Inferior", "Septal"],
        "C",
    ),
    (
        "A newborn fails to pass meconium, and a biopsy shows no ganglion cells. What is the diagnosis?",
        ["Hirschsprung disease", "Pyloric stenosis", "Intussusception", "Celiac disease"],
        "A",
    ),
    (
        "A woman has fatigue and a serum TSH of 48 mU/L. Which drug should be given?",
        ["Methimazole", "Propranolol", "Iodine-131", "Levothyroxine"],
        "D",
    ),
    (
        "A man overdosed on paracetamol four hours ago. Which antidote is indicated?",
        ["Naloxone", "N-acetylcysteine", "Flumazenil", "Atropine"],
        "B",
    ),
    (
        "A patient's arterial pH is 7.25 with a pCO2 of 60 mmHg. Which disorder is it?",
        ["Respiratory acidosis", "Metabolic acidosis", "Respiratory alkalosis", "Metabolic alkalosis"],
        "A",
    ),
    (
        "Which enzyme is lacking in classic phenylketonuria?",
        ["Tyrosinase", "Homogentisate oxidase", "Phenylalanine hydroxylase", "Cystathionine synthase"],
        "C",
    ),
    (
        "A farmer has pinpoint pupils, drooling and a slow pulse. What was he exposed to?",
        ["Atropine", "An organophosphate", "Carbon monoxide", "Lead"],
        "B",
    ),
]
put(
    "MedQA",
    "GBaker/MedQA-USMLE-4-options (question, answer: the option's text, options: {A: ..., D: ...}, meta_info, "
    "answer_idx: the letter, metamap_phrases)",
    "`answer_idx` is a letter by a name that says index; `answer` is the text of the option. Either may be gold.",
    [
        (
            {
                "question": q,
                "answer": o["ABCD".index(a)],
                "options": dict(zip("ABCD", o)),
                "meta_info": "step1",
                "answer_idx": a,
                "metamap_phrases": q.lower().replace(",", "").split()[:4],
            },
            chosen(q, o, a),
        )
        for q, o, a in USMLE
    ],
)

WINO = [
    ("The trophy did not fit into the suitcase because the _ was too large.", "trophy", "suitcase", "1"),
    ("The trophy did not fit into the suitcase because the _ was too small.", "trophy", "suitcase", "2"),
    ("Nora lent Petra her car because _ had to get to the station.", "Nora", "Petra", "2"),
    ("Nora lent Petra her car because _ did not need it that day.", "Nora", "Petra", "1"),
    ("Karim beat Otto at chess although _ had practised for months.", "Karim", "Otto", "2"),
    ("The lamp stood on the shelf until the _ broke under its weight.", "lamp", "shelf", "2"),
    ("Elena thanked Rosa for the soup that _ had cooked.", "Elena", "Rosa", "2"),
    ("The rope held the boat, for the _ was strong.", "rope", "boat", "1"),
]
put(
    "WinoGrande",
    "allenai/winogrande (sentence, option1, option2, answer: `1` or `2`)",
    "The question is `sentence` with a gap; the options are two columns, and `answer` is an index from 1 as a text. "
    "A gold `1` or `2` of math, or a letter one off, is wrong in silence.",
    [
        ({"sentence": s, "option1": a, "option2": b, "answer": g}, chosen(s, [a, b], "AB"[int(g) - 1]))
        for s, a, b, g in WINO
    ],
)

# --- maths --------------------------------------------------------------------------------------------------------
OLY = [
    ("", "Compute the sum of all positive integers $n$ with $n^2 < 50$.", ["28"], "Numerical", None, False, None),
    ("", "Find all real $x$ with $x^2-5x+6=0$.", ["2,3"], "Numerical", None, True, None),
    ("Let $T=7$.", "Compute the remainder of $T^{4}$ modulo 10.", ["1"], "Numerical", None, False, None),
    (
        "",
        "A square has a diagonal of length 10 cm. What is its area?",
        ["50"],
        "Numerical",
        "$\\mathrm{cm}^2$",
        False,
        None,
    ),
    ("", "Express $\\sum_{k=1}^{n} k$ in terms of $n$.", ["$\\frac{n(n+1)}{2}$"], "Expression", None, False, None),
    (
        "A stone falls freely from a tower; take $g=9.8\\,\\mathrm{m/s^2}$ and neglect the air.",
        "How far does it fall in 3 s?",
        ["44.1"],
        "Numerical",
        "m",
        False,
        "1e-1",
    ),
    ("", "Find the interval of all real $x$ with $|x-1|<2$.", ["$(-1,3)$"], "Interval", None, False, None),
    (
        "Let $T=12$.",
        "A rectangle has the sides $T$ and $T-7$. Compute the length of its diagonal.",
        ["13"],
        "Numerical",
        None,
        False,
        None,
    ),
]
put(
    "OlympiadBench",
    "Hothan/OlympiadBench, OE_TO_maths_en_COMP and OE_TO_physics_en_COMP (id, question, solution: list, "
    "final_answer: list of one text, context, image_1 to image_5, modality, difficulty, is_multiple_answer, unit, "
    "answer_type, error, question_type, subfield, subject, language)",
    "`context` is a part of the problem in rows 3, 6 and 8. `final_answer` is a list of one text; with "
    "is_multiple_answer both values are needed. Empty image columns are no pictures.",
    [
        (
            {
                "id": 1600 + n,
                "question": q,
                "solution": [f"One finds {f[0]}."],
                "final_answer": f,
                "context": c or None,
                "image_1": None,
                "image_2": None,
                "image_3": None,
                "image_4": None,
                "image_5": None,
                "modality": "Text-only",
                "difficulty": "Competition",
                "is_multiple_answer": many,
                "unit": unit,
                "answer_type": kind,
                "error": err,
                "question_type": "Open-ended",
                "subfield": "Algebra",
                "subject": "Physics" if err else "Math",
                "language": "English",
            },
            row(f"{c} {q}".strip(), f[0].strip("$"), "math", **{"or": {"gold": [f[0]], "verifier": ["numeric"]}}),
        )
        for n, (c, q, f, kind, unit, many, err) in enumerate(OLY)
    ],
)

OPENR1 = [
    ("Find the value of $3^4 - 2^5$.", "49"),
    ("## Task A-1.\n\nDetermine the number of digits of $4^{5} \\cdot 5^{10}$.", "11"),
    ("Simplify $\\frac{x^2-9}{x-3}$ for $x \\ne 3$.", "x+3"),
    ("The sides of a triangle are 5, 12 and 13. Find its area.", "30"),
    ("Solve the inequality $2x - 7 > 5$.", "(6,+\\infty)"),
    ("How many four-digit numbers are divisible by 25 and have the digit sum 10?", None),
    ("Calculate $\\sin 30^\\circ + \\cos 60^\\circ$.", "1"),
    ("A cyclist rides 45 km in 1 h 15 min. Find the mean speed in km/h.", "36"),
]
SIX = sum(1 for n in range(1000, 10000) if n % 25 == 0 and sum(map(int, str(n))) == 10)
OPENR1 = [(q, str(SIX) if a is None else a) for q, a in OPENR1]
put(
    "OpenR1Math",
    "open-r1/OpenR1-Math-220k (problem, solution, answer, problem_type, question_type, source, uuid, "
    "is_reasoning_complete, generations, correctness_math_verify, correctness_llama, finish_reasons, correctness_count, "
    "messages)",
    "`messages` holds the same question with a model's answer, whose box is wrong in row 4; `generations` are models' "
    "answers, too. The gold is `answer`.",
    [
        (
            {
                "problem": q,
                "solution": f"One computes and finds ${a}$.",
                "answer": a,
                "problem_type": "Algebra",
                "question_type": "math-word-problem",
                "source": "olympiads",
                "uuid": f"00000000-0000-5000-8000-00000000000{n}",
                "is_reasoning_complete": [True, True],
                "generations": [f"<think>\nHmm.\n</think>\n\nThus $\\boxed{{{a}}}$."] * 2,
                "correctness_math_verify": [True, True],
                "correctness_llama": None,
                "finish_reasons": None,
                "correctness_count": 2,
                "messages": [
                    {"content": q, "role": "user"},
                    {
                        "content": f"<think>\nHmm.\n</think>\n\nThus $\\boxed{{{'60' if n == 3 else a}}}$.",
                        "role": "assistant",
                    },
                ],
            },
            row(q, a, "math"),
        )
        for n, (q, a) in enumerate(OPENR1)
    ],
)

META = [
    (
        "GSM_Rephrased",
        "Mira has 4 boxes of 6 pens. How many pens has she?",
        "If Mira owns 4 boxes, each with 6 pens, what is the total number of pens?",
        "24",
    ),
    (
        "GSM_AnsAug",
        "A bus had 30 riders; 12 left and 5 came. How many ride now?",
        "A bus had 30 riders; 12 left and 5 came. How many ride now?",
        "23",
    ),
    (
        "GSM_SV",
        "Omid buys 3 hats of 8 dollars. What does he pay?",
        "Omid buys x hats of 8 dollars. He pays 24 dollars. What is the value of unknown variable x?",
        "3",
    ),
    (
        "GSM_FOBAR",
        "A shelf has 5 rows of 9 jars. How many jars are there?",
        "A shelf has x rows of 9 jars. How many jars are there? If we know the answer to the above question is 45, what is the value of unknown variable x?",
        "5",
    ),
    ("MATH_AnsAug", "Compute $\\frac{2}{3} + \\frac{1}{6}$.", "Compute $\\frac{2}{3} + \\frac{1}{6}$.", "\\frac{5}{6}"),
    (
        "MATH_Rephrased",
        "What is $\\sqrt{72}$ in simplest form?",
        "Write the square root of 72 in its simplest radical form.",
        "6\\sqrt{2}",
    ),
    (
        "GSM_Rephrased",
        "Ana runs 3 km on 5 days a week. How far is that in 4 weeks?",
        "Over 4 weeks, how many kilometres does Ana run if she runs 3 km on 5 days of each week?",
        "60",
    ),
    (
        "MATH_SV",
        "Find the value of $2^5$.",
        "Find the value of $2^X$. The answer is 32. What is the value of unknown variable X?",
        "5",
    ),
]
put(
    "MetaMathQA",
    "meta-math/MetaMathQA (type, query, original_question, response)",
    "The problem is `query`, not `original_question`; the gold is what stands behind `The answer is:` in `response`, whose "
    "other text is the solution. The queries of FOBAR and SV hold another `answer` within.",
    [
        (
            {
                "type": t,
                "query": q,
                "original_question": o,
                "response": f"We work it out step by step.\nThis gives ${a}$.\nThe answer is: {a}",
            },
            row(q, a, "math"),
        )
        for t, o, q, a in META
    ],
)

WEB = [
    ("What is the molar mass of water in g/mol, taking H = 1 and O = 16?", "18", "Integer", "Chemistry", {}),
    ("A bond pays \\$60 a year and costs \\$1,000. What is its current yield?", "6%", "Percentage", "Business", {}),
    ("Is the set of even integers closed under addition?", "Yes", "Boolean", "Mathematics", {"verifier": ["exact"]}),
    ("Find the derivative of $x^3 + 2x$.", "3x^2 + 2", "Expression", "Mathematics", {}),
    ("Which gas makes up most of the Earth's atmosphere?", "Nitrogen", "String", "Other", {"verifier": ["exact"]}),
    ("List the prime factors of 30.", "2, 3, 5", "List", "Mathematics", {}),
    (
        "Which of the following is a prime number?\nA. 21\nB. 27\nC. 29\nD. 33",
        "C",
        "Multiple Choice",
        "Mathematics",
        {},
    ),
    ("Write $\\frac{7}{8}$ as a decimal.", "0.875", "Float", "Mathematics", {}),
    (
        "Find the matrix product of $\\begin{pmatrix}1&2\\end{pmatrix}$ and $\\begin{pmatrix}3\\\\4\\end{pmatrix}$.",
        "11",
        "Matrix",
        "Mathematics",
        {},
    ),
]
put(
    "WebInstructVerified",
    "TIGER-Lab/WebInstruct-verified (id, question, answer, answer_type, category, difficulty)",
    "Answers of many types in one column. The options of row 7 stand in the question, so that its verifier is choice; a "
    "text may be math's or exact's.",
    [
        (
            {"id": 51000 + n, "question": q, "answer": a, "answer_type": t, "category": c, "difficulty": "University"},
            row(q, a, "choice" if t == "Multiple Choice" else "math", **({"or": o} if o else {})),
        )
        for n, (q, a, t, c, o) in enumerate(WEB)
    ],
)

SEARCH = [
    ("who painted the mona lisa", ["Leonardo da Vinci", "Leonardo"]),
    ("what is the capital of australia", ["Canberra"]),
    ("in which year did the berlin wall fall", ["1989"]),
    ("who wrote the novel frankenstein", ["Mary Shelley", "Mary Wollstonecraft Shelley"]),
    ("which river flows through cairo", ["Nile", "the Nile", "River Nile"]),
    ("how many strings has a violin", ["4", "four"]),
    ("what is the chemical symbol of gold", ["Au"]),
    ("who was the first person on the moon", ["Neil Armstrong", "Neil Alden Armstrong"]),
]
LEAD = (
    "Answer the given question. You must conduct reasoning inside <think> and </think> first every time you get new "
    "information. You can search as many times as you want. If you find no further external knowledge needed, you can "
    "directly provide the answer inside <answer> and </answer>, without detailed illustrations. For example, <answer> "
    "Beijing </answer>. Question: "
)
put(
    "SearchR1",
    "PeterGriffinJin/Search-R1, nq_hotpotqa_train (id, question, golden_answers, data_source, prompt, ability, "
    "reward_model: {ground_truth: {target: [...]}, style}, extra_info, metadata)",
    "`ground_truth` is an object with the accepted answers under `target`, which are in `golden_answers` too. The prompt is "
    "the message or `question`; every accepted answer is gold.",
    [
        (
            {
                "id": f"train_{n}",
                "question": q,
                "golden_answers": a,
                "data_source": "nq",
                "prompt": [{"content": LEAD + q + "?\n", "role": "user"}],
                "ability": "fact-reasoning",
                "reward_model": {"ground_truth": {"target": a}, "style": "rule"},
                "extra_info": {"index": n, "split": "train"},
                "metadata": None,
            },
            row(q, a[0], "exact", golds=a if len(a) > 1 else [], **{"or": {"verifier": ["math"]}}),
        )
        for n, (q, a) in enumerate(SEARCH)
    ],
)

MULTI = [
    ("中国古代四大发明中，由蔡伦改进的是哪一项？", "造纸术", "History"),
    ("What is the unit of electric capacitance?", "farad", "Physics"),
    ("一个直角三角形的两条直角边分别为6和8，斜边长是多少？", "10", "Math"),
    ("What is the elasticity of demand if a price rise of 10% lowers the quantity by 5%?", "0.5", "Economics"),
    ("水的化学式是什么？", "H2O", "Chemistry"),
    ("How many bits are there in a byte?", "8", "Computer science"),
    ("某商品原价200元，打八折后的价格是多少元？", "160", "Math"),
    ("Which organ produces bile?", "liver", "Biology"),
]
SYS = (
    "Your task is to solve the given question step by step. You should conduct a systematic, thorough reasoning process "
    "before providing the final answer. Wrap the final answer in \\boxed{}."
)
put(
    "MultiSubjectRLVR",
    "virtuoussy/Multi-subject-RLVR (query: messages, label, level, subject, qid)",
    "`query` is a list of messages with a template of a system message, `label` the reference answer.",
    [
        (
            {
                "query": [{"content": SYS, "role": "system"}, {"content": q, "role": "user"}],
                "level": "college",
                "subject": s,
                "qid": n,
                "label": a,
            },
            row(q, a, "math", **{"or": {"verifier": ["exact", "numeric"]}}),
        )
        for n, (q, a, s) in enumerate(MULTI)
    ],
)

LEAN = [
    (
        "Prove that for positive reals $a, b$ we have $a^2+b^2 \\ge 2ab$.",
        "",
        "theorem lw_1 (a b : ℝ) (ha : 0 < a) (hb : 0 < b) : a^2 + b^2 ≥ 2*a*b := by sorry",
    ),
    (
        "Let $x$ be real with $2x+3=11$. Find $x$.",
        "x = 4",
        "theorem lw_2 (x : ℝ) (h : 2*x + 3 = 11) : x = 4 := by sorry",
    ),
    ("Prove that $7$ divides $8^n - 1$ for all $n$.", "", "theorem lw_3 (n : ℕ) : 7 ∣ 8^n - 1 := by sorry"),
    ("Prove that $\\sqrt 2$ is irrational.", "", "theorem lw_4 : Irrational (Real.sqrt 2) := by sorry"),
    (
        "Show that $1+3+\\dots+(2n-1)=n^2$.",
        "n^2",
        "theorem lw_5 (n : ℕ) : ∑ i in Finset.range n, (2*i+1) = n^2 := by sorry",
    ),
    ("Let $f(x)=x^2$. Find $f(3)$.", "9", "theorem lw_6 (f : ℝ → ℝ) (hf : ∀ x, f x = x^2) : f 3 = 9 := by sorry"),
    (
        "Prove that a group of order 2 is abelian.",
        "",
        "theorem lw_7 (G : Type*) [Group G] [Fintype G] (h : Fintype.card G = 2) : ∀ a b : G, a*b = b*a := by sorry",
    ),
    ("Show that $|a+b| \\le |a|+|b|$.", "", "theorem lw_8 (a b : ℝ) : |a + b| ≤ |a| + |b| := by sorry"),
]
put(
    "LeanWorkbook",
    "internlm/Lean-Workbook (id, status, tactic, state_before, state_after, natural_language_statement, "
    "answer, formal_statement)",
    "What is asked for is a formal proof, for which no verifier exists here. `answer` is empty in most rows and part of the "
    "statement in the others; to take it as the gold of `natural_language_statement` is wrong. The refusal should name "
    "`formal_statement`, formal proofs, or a verifier of one's own.",
    [
        (
            {
                "id": f"lean_workbook_{n}",
                "status": "proved" if n % 2 else "unproved",
                "tactic": "nlinarith [sq_nonneg (a - b)]" if n % 2 else "",
                "state_before": "⊢ goal",
                "state_after": "no goals" if n % 2 else "",
                "natural_language_statement": q,
                "answer": a,
                "formal_statement": f,
            },
            refused("no_verifier", "formal proofs"),
        )
        for n, (q, a, f) in enumerate(LEAN)
    ],
)

ORCA = [
    (
        "Jungkook stands in a queue. He is the 7th from the front and the 5th from the back. How many people queue?",
        "If he is the 7th from the front, there are 6 before him. If he is the 5th from the back, 4 are behind him. So the queue has 6 + 1 + 4 = 11 people.",
    ),
    ("A number divided by 6 is 9. What is the number?", "Let the number be x. Then x / 6 = 9 and therefore x = 54."),
    (
        "How many three-digit numbers can be made of 1, 2 and 3 without repetition?",
        "There are 3 choices for the first digit, 2 for the second and 1 for the last: 3 * 2 * 1 = 6 numbers in total.",
    ),
    (
        "A rope of 12 m is cut into pieces of 0.75 m. How many pieces are there?",
        "To find the number of pieces, divide 12 by 0.75. The result is 16 pieces of rope.",
    ),
    (
        "Yoongi has 3 more stickers than Min, who has 14. How many have both?",
        "Yoongi has 14 + 3 = 17 stickers. Together they have 17 + 14 = 31 stickers.",
    ),
    (
        "What is the perimeter of a rectangle of 8 cm by 3 cm?",
        "The perimeter P is 2 * (8 cm + 3 cm) = 22 cm, so the perimeter is 22 cm.",
    ),
    (
        "A printer prints 24 pages a minute. How many does it print in 2.5 minutes?",
        "We multiply 24 by 2.5, which is 60. The printer prints 60 pages in this time.",
    ),
    (
        "Which number is 45 less than 3 times 40?",
        "3 times 40 is 120, and 120 - 45 equals 75, which is the number we look for.",
    ),
]
put(
    "OrcaMath",
    "microsoft/orca-math-word-problems-200k (question, answer: a worked text without a mark)",
    "`answer` is a worked text without any mark of the final answer: there is no gold. Either every row is refused, or the "
    "set is, naming that `answer` holds texts. To make the whole text the gold is wrong, since nothing can match it.",
    [
        ({"question": q, "answer": a}, refused("gold_not_found", "answers are worked texts") | {"or": {"gold": [g]}})
        for (q, a), g in zip(ORCA, ["11", "54", "6", "16", "31", "22", "60", "75"])
    ],
)

# --- programs -------------------------------------------------------------------------------------------------------
STD = [
    (
        "Read two integers a and b and print their greatest common divisor.",
        "import math\na, b = map(int, input().split())\nprint(math.gcd(a, b))",
        [("12 18\n", "6\n"), ("7 5\n", "1\n"), ("100 75\n", "25\n")],
    ),
    (
        "Read n and then n integers. Print them sorted in decreasing order.",
        "input()\nprint(*sorted(map(int, input().split()), reverse=True))",
        [("3\n4 9 2\n", "9 4 2\n"), ("1\n5\n", "5\n"), ("4\n-1 0 3 -7\n", "3 0 -1 -7\n")],
    ),
    (
        "Read a line and print it reversed.",
        "print(input()[::-1])",
        [("hello\n", "olleh\n"), ("a b\n", "b a\n"), ("level up\n", "pu level\n")],
    ),
    (
        "Read n and print the n-th Fibonacci number, where F(1) = F(2) = 1.",
        "n = int(input())\na, b = 0, 1\nfor _ in range(n):\n    a, b = b, a + b\nprint(a)",
        [("1\n", "1\n"), ("10\n", "55\n"), ("30\n", "832040\n")],
    ),
    (
        "Read a string of brackets ( and ). Print YES if it is balanced, else NO.",
        "d = 0\nok = True\nfor c in input():\n    d += 1 if c == '(' else -1\n    ok &= d >= 0\nprint('YES' if ok and d == 0 else 'NO')",
        [("(())\n", "YES\n"), ("())(\n", "NO\n"), ("()()()\n", "YES\n"), ("(((\n", "NO\n")],
    ),
    (
        "Read t, then t lines with one integer each. For each print its number of divisors.",
        "for _ in range(int(input())):\n    n = int(input())\n    print(sum(n % d == 0 for d in range(1, n + 1)))",
        [("3\n6\n7\n12\n", "4\n2\n6\n"), ("1\n1\n", "1\n"), ("2\n16\n100\n", "5\n9\n")],
    ),
    (
        "Read the hours and minutes `h m` of a clock and print the minutes since midnight.",
        "h, m = map(int, input().split())\nprint(60 * h + m)",
        [("0 0\n", "0\n"), ("13 45\n", "825\n"), ("23 59\n", "1439\n")],
    ),
    (
        "Read an integer n and print it in binary.",
        "print(bin(int(input()))[2:])",
        [("5\n", "101\n"), ("64\n", "1000000\n"), ("0\n", "0\n")],
    ),
]
put(
    "TACO",
    "BAAI/TACO (question, solutions: JSON text, starter_code, input_output: JSON text, difficulty, raw_tags, name, "
    "source, tags, skill_types, url, Expected Auxiliary Space, time_limit, date, picture_num, memory_limit, Expected Time "
    "Complexity)",
    "`input_output` is the JSON text of two lists, `solutions` that of a list of programs; row 8 has no solution. "
    "`picture_num` is a word or null, and no picture.",
    [
        (
            {
                "question": q,
                "solutions": json.dumps([] if n == 7 else [s, "# second\n" + s]),
                "starter_code": "",
                "input_output": json.dumps({"inputs": [a for a, _ in t], "outputs": [b for _, b in t]}),
                "difficulty": "EASY",
                "raw_tags": "['math']",
                "name": None,
                "source": "codeforces",
                "tags": "['Mathematics']",
                "skill_types": "[]",
                "url": None,
                "Expected Auxiliary Space": None,
                "time_limit": "2.0 seconds",
                "date": None,
                "picture_num": None,
                "memory_limit": "256.0 megabytes",
                "Expected Time Complexity": None,
            },
            row(q, None, "code", tests=[{"input": a, "output": b} for a, b in t]),
        )
        for n, (q, s, t) in enumerate(STD)
    ],
)

FUN = [
    (
        "has_gap",
        "numbers: list[int]",
        "bool",
        "Say whether an integer between the least and the greatest of the list is missing.",
        "    return len(set(numbers)) < max(numbers) - min(numbers) + 1\n",
        ["[1, 2, 4]", "[3, 4, 5]", "[7]"],
        "len(set(numbers)) <= max",
    ),
    (
        "count_upper",
        "text: str",
        "int",
        "Count the capital letters of a text.",
        "    return sum(c.isupper() for c in text)\n",
        ["'aBcD'", "''", "'XYZ'"],
        "c.islower()",
    ),
    (
        "second_largest",
        "numbers: list[int]",
        "int",
        "Return the second largest distinct number.",
        "    return sorted(set(numbers))[-2]\n",
        ["[1, 5, 5, 3]", "[2, 1]", "[-1, -5, -3]"],
        "sorted(numbers)[-2]",
    ),
    (
        "digits_product",
        "n: int",
        "int",
        "Return the product of the decimal digits of n.",
        "    p = 1\n    for d in str(n):\n        p *= int(d)\n    return p\n",
        ["234", "10", "9"],
        "p += int(d)",
    ),
    (
        "chunks",
        "items: list, size: int",
        "list",
        "Split a list into pieces of the given size.",
        "    return [items[i:i + size] for i in range(0, len(items), size)]\n",
        ["[1, 2, 3, 4, 5], 2", "[], 3", "['a'], 1"],
        "range(1, len(items), size)",
    ),
    (
        "is_leap",
        "year: int",
        "bool",
        "Say whether a year is a leap year in the Gregorian calendar.",
        "    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)\n",
        ["2000", "1900", "2024", "2023"],
        "year % 4 == 0",
    ),
    (
        "common_prefix",
        "a: str, b: str",
        "str",
        "Return the longest common prefix of two texts.",
        "    n = 0\n    while n < min(len(a), len(b)) and a[n] == b[n]:\n        n += 1\n    return a[:n]\n",
        ["'flower', 'flow'", "'', 'x'", "'dog', 'cat'"],
        "a[:n+1]",
    ),
    (
        "flatten_once",
        "items: list",
        "list",
        "Flatten a list of lists by one level.",
        "    return [x for part in items for x in part]\n",
        ["[[1], [2, [3]]]", "[]", "[[], [4, 5]]"],
        "return items",
    ),
]


def called(name: str, head: str, body: str, argument: str) -> str:
    """What the program returns, as Python writes it."""
    space: Row = {}
    exec(f"def {name}({head}):\n{body}", space)
    return repr(eval(f"{name}({argument})", space))


PACK = []
for n, (name, head, back, text, body, args, bug) in enumerate(FUN):
    declaration = f"def {name}({head}) -> {back}:\n"
    prompt = f'from typing import List\n\n\n{declaration}    """ {text}\n    """\n'
    checks = [f"    assert {name}({a}) == {called(name, head, body, a)}" for a in args]
    test = f"def check({name}):\n" + "\n".join(checks) + f"\n\ncheck({name})"
    PACK.append(
        (
            {
                "task_id": f"Python/{900 + n}",
                "prompt": prompt,
                "declaration": f"from typing import List\n\n\n{declaration}",
                "canonical_solution": body,
                "buggy_solution": f"    return None  # {bug}\n",
                "bug_type": "value misuse",
                "failure_symptoms": "incorrect output",
                "entry_point": name,
                "import": "",
                "test_setup": "",
                "test": test,
                "example_test": f"def check({name}):\n{checks[0]}\ncheck({name})\n",
                "signature": f"{name}({head}) -> {back}",
                "docstring": text,
                "instruction": f"Write a Python function `{name}({head}) -> {back}` to solve the following problem:\n{text}",
            },
            row(
                prompt,
                None,
                "code",
                solution=f"def {name}({head}) -> {back}:\n{body}",
                tests_contain=[c.strip() for c in checks],
                **{
                    "or": {
                        "prompt": [
                            f"Write a Python function `{name}({head}) -> {back}` to solve the following problem:\n{text}"
                        ]
                    }
                },
            ),
        )
    )
put(
    "HumanEvalPack",
    "bigcode/humanevalpack, python (task_id, prompt, declaration, canonical_solution, buggy_solution, "
    "bug_type, failure_symptoms, entry_point, import, test_setup, test, example_test, signature, docstring, instruction)",
    "`buggy_solution` stands beside the canonical one and is no solution; `example_test` is a part of `test`. The prompt is "
    "`prompt` or `instruction`. The tests call `check` themselves.",
    PACK,
)

JS = [
    ("addAll", "numbers", "Return the sum of an array of numbers.", [("[1,2,3]", "6"), ("[]", "0"), ("[-4,4]", "0")]),
    ("doubled", "text", "Return the text twice in a row.", [('"ab"', '"abab"'), ('""', '""'), ('"x"', '"xx"')]),
    (
        "evens",
        "numbers",
        "Return the even numbers of an array, in their order.",
        [("[1,2,4]", "[2, 4]"), ("[]", "[]"), ("[3,5]", "[]")],
    ),
    (
        "isPalindrome",
        "text",
        "Say whether a text reads the same from both ends.",
        [('"anna"', "true"), ('"ab"', "false"), ('""', "true")],
    ),
    ("factorial", "n", "Return n factorial.", [("0", "1"), ("5", "120"), ("7", "5040")]),
    (
        "wordCount",
        "text",
        "Return the number of words, which are separated by single blanks; an empty text has none.",
        [('"a b c"', "3"), ('""', "0"), ('"one"', "1")],
    ),
    (
        "maxOf",
        "numbers",
        "Return the greatest number of an array that is not empty.",
        [("[1,9,3]", "9"), ("[-2,-8]", "-2"), ("[0]", "0")],
    ),
    (
        "unique",
        "items",
        "Return the array without repetitions, in the order of first appearance.",
        [("[1,1,2]", "[1, 2]"), ("[]", "[]"), ("[3,2,3]", "[3, 2]")],
    ),
]
MPL = []
for n, (name, head, text, cases) in enumerate(JS):
    prompt = f"//{text}\nfunction {name}({head}){{\n"
    checks = [f"  assert.deepEqual(candidate({a}),{b});" for a, b in cases]
    test = (
        "const assert = require('node:assert');\n\n\nfunction test() {\n  let candidate = "
        + name
        + ";\n"
        + "\n".join(checks)
        + "\n}\n\ntest();"
    )
    MPL.append(
        (
            {
                "name": f"HumanEval_{900 + n}_{name}",
                "language": "js",
                "prompt": prompt,
                "doctests": "transform",
                "original": f"/datasets/originals/HumanEval_{900 + n}_{name}.py",
                "prompt_terminology": "reworded",
                "tests": test,
                "stop_tokens": ["\nfunction ", "\n/*", "\n//", "\nconsole.log"],
            },
            row(prompt, None, "code", tests_contain=[c.strip() for c in checks], says=["js", "javascript", "node"]),
        )
    )
put(
    "MultiPLE",
    "nuprl/MultiPL-E, humaneval-js (name, language, prompt, doctests, original, prompt_terminology, tests, stop_tokens)",
    "The programs are JavaScript: `language` says so, and a program judged as Python would fail always. `tests` is one text. "
    "There is no worked solution.",
    MPL,
)

ZEBRA = [[["1", "Peter", "Brit"], ["2", "Eric", "Dane"]], [["1", "Eric", "Dane"], ["2", "Peter", "Brit"]]]
GURU = []
for n, (q, a) in enumerate(
    [
        ("Find the number of positive divisors of 72.", "12"),
        ("What is $\\log_3 81$?", "4"),
        ("Two dice are thrown. What is the probability of a sum of 7?", "\\frac{1}{6}"),
    ]
):
    GURU.append(
        (
            {
                "data_source": "math__deepscaler_preview",
                "prompt": [{"role": "user", "content": q + " Please output the final answer within \\boxed{}."}],
                "ability": "math",
                "apply_chat_template": True,
                "reward_model": {"ground_truth": a, "style": "rule"},
                "extra_info": {"index": n, "split": "train"},
                "qwen2.5_7b_pass_rate": 0.5,
                "qwen3_30b_pass_rate": 1.0,
            },
            row(q, a, "math"),
        )
    )
for n in range(2):
    q, s, t = STD[n]
    GURU.append(
        (
            {
                "data_source": "codegen__primeintellect",
                "prompt": [{"role": "user", "content": q}],
                "ability": "codegen",
                "apply_chat_template": True,
                "reward_model": {
                    "ground_truth": json.dumps({"inputs": [a for a, _ in t], "outputs": [b for _, b in t]}),
                    "style": "rule",
                },
                "extra_info": {"index": 3 + n, "split": "train"},
                "qwen2.5_7b_pass_rate": 0.2,
                "qwen3_30b_pass_rate": 0.9,
            },
            row(q, None, "code", tests=[{"input": a, "output": b} for a, b in t]),
        )
    )
for n in (0, 5):
    name, head, back, text, body, args, _ = FUN[n]
    q = f"Write a Python function `{name}({head})`. {text}"
    checks = [f"assert candidate({a}) == {called(name, head, body, a)}" for a in args]
    GURU.append(
        (
            {
                "data_source": "codegen__leetcode2k",
                "prompt": [{"role": "user", "content": q}],
                "ability": "codegen",
                "apply_chat_template": True,
                "reward_model": {
                    "ground_truth": json.dumps(
                        {"functional": "def check(candidate):\n    " + "\n    ".join(checks) + f"\n\ncheck({name})"}
                    ),
                    "style": "rule",
                },
                "extra_info": {"index": 5 + n, "split": "train"},
                "qwen2.5_7b_pass_rate": 0.2,
                "qwen3_30b_pass_rate": 0.9,
            },
            row(q, None, "code", tests_contain=checks),
        )
    )
for n, z in enumerate(ZEBRA):
    GURU.append(
        (
            {
                "data_source": "logic__zebra_puzzle_dataset",
                "prompt": [
                    {
                        "role": "user",
                        "content": f"There are 2 houses. Two people of two nations live in them. Clue: {z[0][1]} is the {z[0][2]} and lives in house 1. Give the table in JSON.",
                    }
                ],
                "ability": "logical_reasoning",
                "apply_chat_template": True,
                "reward_model": {"ground_truth": {"header": ["House", "Name", "Nation"], "rows": z}, "style": "rule"},
                "extra_info": {"index": 8 + n, "split": "train"},
                "qwen2.5_7b_pass_rate": 0.1,
                "qwen3_30b_pass_rate": 0.6,
            },
            refused("gold_not_text", "the gold is a table, which no verifier reads"),
        )
    )
put(
    "Guru",
    "LLM360/guru-RL-92k (data_source, prompt, ability, apply_chat_template, reward_model: {ground_truth, style}, "
    "extra_info, qwen2.5_7b_pass_rate, qwen3_30b_pass_rate)",
    "verl's columns with kinds of golds by `ability`: texts, the JSON text of inputs and outputs, that of a functional test, "
    "and tables of puzzles, which are refused row by row.",
    GURU,
)

THOUGHTS = []
for _n, (q, a) in enumerate(
    [
        ("Compute $7! / 5!$.", "42"),
        ("Find the greatest integer $n$ with $n^2 \\le 200$.", "14"),
        ("What is the area of a circle of radius 3?", "9\\pi"),
        ("Solve $5x = 2x + 21$.", "7"),
    ]
):
    THOUGHTS.append(
        (
            {
                "problem": q,
                "deepseek_reasoning": "Okay, let me think.",
                "deepseek_solution": f"We get \\[\\boxed{{{a}}}\\]",
                "ground_truth_solution": f"By computing we find that the answer is $\\boxed{{{a}}}$.",
                "domain": "math",
                "source": "numina_math",
                "test_cases": None,
                "starter_code": None,
            },
            row(q, a, "math"),
        )
    )
for n in (2, 3, 6):
    q, s, t = STD[n]
    THOUGHTS.append(
        (
            {
                "problem": q,
                "deepseek_reasoning": "Okay, let me think.",
                "deepseek_solution": f"```python\n{s}\n```",
                "ground_truth_solution": s,
                "domain": "code",
                "source": "taco",
                "test_cases": json.dumps({"inputs": [a for a, _ in t], "outputs": [b for _, b in t]}),
                "starter_code": "",
            },
            row(q, None, "code", tests=[{"input": a, "output": b} for a, b in t]),
        )
    )
THOUGHTS.append(
    (
        {
            "problem": "Explain how a catalyst changes the rate of a reaction, and give two examples.",
            "deepseek_reasoning": "Okay.",
            "deepseek_solution": "A catalyst lowers the activation energy.",
            "ground_truth_solution": None,
            "domain": "chemistry",
            "source": "camel",
            "test_cases": None,
            "starter_code": None,
        },
        refused("missing_gold", "there is no reference"),
    )
)
THOUGHTS.append(
    (
        {
            "problem": "Which number is next: 2, 6, 12, 20, ...? Justify it.",
            "deepseek_reasoning": "Okay.",
            "deepseek_solution": "It is $\\boxed{30}$.",
            "ground_truth_solution": None,
            "domain": "puzzle",
            "source": "riddle_sense",
            "test_cases": None,
            "starter_code": None,
        },
        refused("missing_gold", "a model's solution is no reference"),
    )
)
put(
    "OpenThoughts",
    "open-thoughts/OpenThoughts-114k, config metadata (problem, deepseek_reasoning, deepseek_solution, "
    "ground_truth_solution, domain, source, test_cases, starter_code)",
    "The gold of mathematics stands in the box of `ground_truth_solution`; programs have `test_cases`. `deepseek_solution` is "
    "a model's: where there is no reference the row is refused. Rows 8 and 9 must not take it.",
    THOUGHTS,
)

(HERE / "expected.json").write_text(json.dumps(EXPECTED, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
print(len(EXPECTED), {k: len(v["rows"]) for k, v in EXPECTED.items()})
