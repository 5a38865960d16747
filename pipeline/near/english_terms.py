"""The English tables of `terms`, which explains how they are laid out; no code."""

from __future__ import annotations

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

ENGLISH_TERMS = """
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

ENGLISH_EVERYDAY_TERMS = """
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

ENGLISH_SYNONYMS = """
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
