"""Gold-conditioned rationalization: the model is shown the answer and asked for a derivation.

STaR, arXiv 2203.14465, section 3.2; ExPO, arXiv 2507.02834. The answer proves nothing here, since it was handed over: a
positive of this kind may rest on a derivation that is wrong, and a wrong gold gets one as well.
"""

from truegold.synth.strategies.base import Strategy

RATIONALIZE = Strategy(
    "rationalize",
    "1",
    answer={
        "en": """{problem}

(For checking only: the result is {gold}.)

Derive it step by step, as for a reader who has seen nothing but the problem. Do not state the result before it is \
derived, and do not say that it was given.""",
        "zh": """{problem}

（仅供核对：结果是 {gold}。）

请逐步推导，读者只看得到题目。不要在推导之前写出结果，也不要提到结果已经给出。""",
    },
    uses_gold=True,
    for_programs=False,
    trust=0.3,
)
