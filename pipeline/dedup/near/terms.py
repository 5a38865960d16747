"""Words that decide what a problem is: exchanging one for a word of another line makes another problem.

    "the largest odd integer"  ->  greatest · odd · integer
    "the greatest odd integer" ->  greatest · odd · integer     the same
    "the smallest odd integer" ->  least · odd · integer        another problem

Each line of a table has the words of one term, the term itself first; lines without an empty one between them are a
family, of which a problem means this member and not that. Words that merely ask for an answer, or that any
problem may use, are no terms (`ASKING`).
"""

from __future__ import annotations

import re

PHRASES = (
    (r"\bat least\b|\bno (?:less|fewer) than\b|\bor more\b|\bor greater\b", " atleast "),
    (r"\bat most\b|\bno (?:more|greater) than\b|\bor less\b|\bor fewer\b", " atmost "),
    (r"\b(?:less|smaller|lower|fewer) than or equal to\b|\bnot exceeding\b|\bdoes not exceed\b", " atmost "),
    (r"\b(?:greater|larger|more|bigger) than or equal to\b", " atleast "),
    (r"\bsurface areas?\b", " surfacearea "),
    (r"\bcross[- ]sections?\b", " crosssection "),
    (r"\bnon-?\s?zero\b", " nonzero "),
    (r"\bnon-?\s?negative\b", " nonnegative "),
    (r"\bnon-?\s?positive\b", " nonpositive "),
    (r"\bcounter-?clockwise\b|\banti-?clockwise\b", " counterclockwise "),
    (r"\bsemi-?circles?\b", " semicircle "),
    (r"\bstandard deviations?\b", " deviation "),
    (r"\bwhole numbers?\b", " integer "),
    (r"\bnatural numbers?\b", " positive integer "),
    (r"\bsame as\b|\bequal to\b", " equal "),
    (r"\bas well as\b", " and "),
    (
        r"\b(?:square|sq|cubic)\.?\s+(?=(?:centi|milli|kilo)?met|unit|inch|f(?:oo|ee)t|yard|mile|(?:cm|m|km|ft|in)\b)",
        "",
    ),
)
"""Several words that are one term."""

_ENGLISH_TERMS = """
least smallest minimum minimal lowest fewest minimize minimise minimized min minima shortest cheapest
greatest largest maximum maximal highest biggest maximize maximise maximized max maxima longest

sum sums add adds adding added addition
difference differences subtract subtracted subtracting minus
product products multiply multiplied multiplying multiplies
quotient quotients
ratio ratios
remainder remainders residue

average averages mean averaged
median medians
mode modes
variance
deviation

even
odd
composite
prime primes

positive
negative
nonnegative
nonpositive

integer integers
real reals
rational
irrational
complex
imaginary

indistinguishable identical
distinguishable

squared square squares
cubed cube cubes

factor factors divisor divisors
multiple multiples divisible

arithmetic
geometric

sine
cosine

inverse inverses
reciprocal reciprocals
opposite

area areas
perimeter perimeters
circumference circumferences
volume volumes capacity
surfacearea
crosssection
radius radii
diameter diameters
height heights tall high altitude altitudes
width widths wide breadth
length lengths long
diagonal diagonals
hypotenuse
side sides
edge edges

supplement supplementary
complement complementary

incenter incircle inradius
circumcenter circumcircle circumradius
centroid
orthocenter

slope gradient
intercept intercepts

focus foci
directrix
asymptote asymptotes

triangle triangles triangular
quadrilateral
rectangle rectangles rectangular
parallelogram
rhombus
trapezoid trapezium
pentagon
hexagon hexagons hexagonal
octagon
circle circles circular
semicircle
ellipse
parabola
hyperbola

sphere spheres spherical
hemisphere
cone cones conical
cylinder cylinders cylindrical
prism
pyramid
tetrahedron

isosceles
equilateral
scalene

acute
obtuse

inscribed
circumscribed

simple
compound compounded compounds compounding

annually yearly
semiannually
quarterly
monthly
weekly
daily

profit
loss
discount discounts discounted
tax taxes
tip tips gratuity
markup
surcharge
commission

domain
range

derivative derivatives
integral
limit

eigenvalue eigenvalues
eigenvector eigenvectors
determinant

permutation permutations
combination combinations

numerator numerators
denominator denominators

row rows
column columns

horizontal horizontally
vertical vertically

parallel
perpendicular

clockwise
counterclockwise

ascending
descending

exactly
atleast
atmost

heads head
tails tail

boy boys male
girl girls female

monday
tuesday
wednesday
thursday
friday
saturday
sunday

hearts heart
diamonds diamond
clubs club
spades spade

solution solutions root roots zeros zeroes

consecutive successive

nonzero

digit digits

term terms

coefficient coefficients

exponent exponents

sequence sequences progression progressions

series

absolute

lateral

depth deep

distance distances far

face faces

vertex vertices

angle angles

leg legs

chord chords

arc arcs

sector sectors

tangent

midpoint midpoints

center centre centers centered

polygon polygons

principal

matrix matrices

projection

concavity concave

critical

probability probabilities chance likelihood odds

expected expectation

percent percentage percents

not no never cannot neither nor
"""

_EVERYDAY_TERMS = """
more greater larger additional
less fewer smaller

left remain remains remaining leftover rest

before earlier
after later

first
last final

inside
outside

above
below

both
either

increase increased increases increasing raise raised grew grow grows
decrease decreased decreases decreasing reduce reduced lowered

cost costs price spend spent paid pay

time

weight weigh weighs

age old

speed rate

only

without

except

interest
"""

_ENGLISH_SYNONYMS = """
different distinct
roll rolled rolls toss tossed tosses throw thrown flip flipped flips rolling
fair standard ordinary regular-die
pick picked picks select selected selects choose chosen chooses draw drawn draws
random randomly
begin begins start starts starting initial initially
big large
small little
buy buys bought purchase purchased purchases
sell sells sold
car cars vehicle vehicles automobile
child children kid kids
make makes made
travel travels traveled drive drives drove
way ways manner manners
people person persons
satisfy satisfies satisfying satisfied
equation equations
lie lies
contain contains containing
interchange interchanged swap swapped switch switched reverse reversed
meet meets intersect intersects intersection
line lines
opposite
through
"""

ASKING = frozenset(
    "find determine compute calculate evaluate solve what how many much value values number numbers give given express"
    " write written enter answer answers form state show shown name list simplify simplified simplest suppose let"
    " assume consider if then is are possible total altogether all such that so can could must need needed following"
    " expression get obtain tell say result problem question please denote denotes denoted define defined has have had"
    " equal equals equal satisfy satisfies exist exists certain particular".split()
)
"""Words that ask, or that introduce what is given: they come and go in other words."""

_CHINESE_TERMS = """
底面积 底面面积
表面积 表面
侧面积 侧面
占地面积 占地
面积
底面周长
周长
体积 容积
半径
直径
边长
棱长总和 棱长和 棱长之和 所有棱长 总棱长
棱长 棱
高度 高是 高为 的高 高多少
宽是 宽为 的宽 宽多少
长是 长为 的长 长多少

顶角
底角

圆锥
圆柱
正方体
长方体

正方形
长方形
三角形
平行四边形
梯形
半圆
圆环

最大 最多 至多
最小 最少 至少

质数 素数
合数

奇数
偶数

利息
本金
取回 本息

男生 男
女生 女

增加 涨 提高
减少 降 降低 便宜

前项
后项

被减数
减数

速度
路程
时间

分子
分母

第一
第二
第三
第四
两天 两次

上山
下山

返回
去时

成人 大人
儿童

红
白
黄
黑

甲
乙
丙
丁

未 没有

平均

倒数

商

余数

剩下 还剩 余下 剩余 剩

不

倍

几分之几 百分之几

比
"""


def _table(text: str) -> dict[str, str]:
    return {word: line.split()[0] for line in text.split("\n") for word in line.split()}


def _families(*tables: str) -> dict[str, int]:
    families = [family for text in tables for family in text.strip().split("\n\n")]
    return {line.split()[0]: position for position, family in enumerate(families) for line in family.splitlines()}


TERMS = _table(_ENGLISH_TERMS)
"""The term of each English word that is of one."""
EVERYDAY_TERMS = _table(_EVERYDAY_TERMS)
"""Words of stories that decide less: a rewording may leave them out, or say them otherwise."""
SYNONYMS = _table(_ENGLISH_SYNONYMS)
"""The word that stands for each of a group of words that mean the same."""
CHANGEABLE = frozenset((*TERMS, *EVERYDAY_TERMS, *SYNONYMS, *ASKING, "dollar", "dollars"))
"""Words that another word may stand for in a copy."""
CHINESE_TERMS = _table(_CHINESE_TERMS)
"""The term of each Chinese word that is of one."""
FAMILIES = _families(_ENGLISH_TERMS, _EVERYDAY_TERMS, _CHINESE_TERMS)
"""The family of each term: its members stand where another one could, as even and odd, or area and perimeter."""
CHINESE_TERM = re.compile("|".join(sorted(CHINESE_TERMS, key=len, reverse=True)))
"""This matches the longest Chinese word of a term."""
_PHRASE_PATTERNS = [(re.compile(pattern, re.IGNORECASE), replacement) for pattern, replacement in PHRASES]
_PHRASE_PARTS = tuple(
    "least|less|fewer|more|greater|larger|bigger|most|exceed|equal|same as|surface|cross|non|clock|semi|standard|whole"
    "|natural|as well|square|sq|cubic".split("|")
)
"""Each match of a phrase has one of these in it; to look for them takes a tenth of the time."""

IDLE_IN_COPIES = frozenset(
    "find determine compute calculate evaluate solve what how many much give given number numbers value values say let"
    " suppose assume consider if then such that so write simplest form expression following there is are".split()
)
"""Small words that only ask or introduce: a copy may say "what is the number of" for "how many"."""
UNITS = {
    **dict.fromkeys("cm centimeter centimeters centimetre centimetres".split(), "cm"),
    **dict.fromkeys("m meter meters metre metres".split(), "m"),
    **dict.fromkeys("km kilometer kilometers kilometre kilometres".split(), "km"),
    **{"mm": "mm", "dm": "dm", "ft": "ft", "foot": "ft", "feet": "ft", "inch": "in", "inches": "in", "yard": "yd"},
    **{"yards": "yd", "mile": "mi", "miles": "mi", "unit": "unit", "units": "unit"},
}
"""Units of length: a problem of geometry is the same in other ones, as long as all of them change."""
CHINESE_UNIT = re.compile(r"(?:平方|立方)?(?:千米|厘米|分米|毫米|米|(?:km|cm|dm|mm|m)(?:\^?[23])?(?![a-z]))")
"""This matches units of length, area and volume in a Chinese text."""
_CHINESE_UNITS = {"千米": "km", "厘米": "cm", "分米": "dm", "毫米": "mm", "米": "m"}
IDLE_CHARACTERS = frozenset(
    "的了是在有个和把这那它其中每共一为要着地得所以到已知问请用将成就需后如果那么与及各该现又只再从被给比按照样"
    "块条张支本种些元角分"
)
"""Chinese characters that come and go in other words."""


def chinese_unit(unit: str) -> str:
    """Return the unit of length of a match of CHINESE_UNIT."""
    base = unit.lower().removeprefix("平方").removeprefix("立方").rstrip("^23")
    return _CHINESE_UNITS.get(base, base)


def join_phrases(text: str) -> str:
    """Return the text with each phrase of PHRASES as one word."""
    lower = text.lower()
    if any(part in lower for part in _PHRASE_PARTS):
        for pattern, replacement in _PHRASE_PATTERNS:
            text = pattern.sub(replacement, text)
    return text
