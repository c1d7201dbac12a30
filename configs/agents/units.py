"""Units of measure: the value of each name in base units, and its dimension.

A unit is a factor and a dimension (powers of length, mass, time, ...), so that a product or
quotient of units is a unit too: `km/h`, `kWh`, `m²`. Definitions follow the SI brochure (9th
edition) and, for customary units, NIST Special Publication 811, appendix B, as exact fractions.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from fractions import Fraction

__all__ = ["PLAIN", "Dimension", "Unit", "dimension_name", "divide", "find", "multiply", "nearest"]

Dimension = tuple[tuple[str, Fraction], ...]
"""Powers of base dimensions, sorted by name; empty for a plain number."""
PLAIN: Dimension = ()


@dataclass(frozen=True)
class Unit:
    """`name` is for display; a value in this unit is `factor * value + offset` base units."""

    name: str
    factor: Fraction
    dimension: Dimension
    offset: Fraction = Fraction(0)


def multiply(left: Dimension, right: Dimension, power: Fraction = Fraction(1)) -> Dimension:
    """The dimension of left × right^power."""
    powers = dict(left)
    for base, exponent in right:
        powers[base] = powers.get(base, Fraction(0)) + exponent * power
    return tuple(sorted((base, p) for base, p in powers.items() if p))


def divide(left: Dimension, right: Dimension) -> Dimension:
    return multiply(left, right, Fraction(-1))


def _dimension(**powers: int) -> Dimension:
    return tuple(sorted((base, Fraction(p)) for base, p in powers.items()))


LENGTH, MASS, TIME = _dimension(length=1), _dimension(mass=1), _dimension(time=1)
TEMPERATURE, DATA, ANGLE = _dimension(temperature=1), _dimension(data=1), _dimension(angle=1)
CURRENT, AMOUNT = _dimension(current=1), _dimension(amount=1)
AREA, VOLUME, SPEED = _dimension(length=2), _dimension(length=3), _dimension(length=1, time=-1)
FREQUENCY = _dimension(time=-1)
FORCE = _dimension(mass=1, length=1, time=-2)
PRESSURE = _dimension(mass=1, length=-1, time=-2)
ENERGY = _dimension(mass=1, length=2, time=-2)
POWER = _dimension(mass=1, length=2, time=-3)
VOLTAGE = divide(POWER, CURRENT)

_KINDS: dict[Dimension, str] = {
    PLAIN: "a plain number",
    LENGTH: "a length",
    MASS: "a mass",
    TIME: "a time",
    TEMPERATURE: "a temperature",
    DATA: "an amount of data",
    divide(DATA, TIME): "a data rate",
    ANGLE: "an angle",
    AREA: "an area",
    VOLUME: "a volume",
    SPEED: "a speed",
    divide(SPEED, TIME): "an acceleration",
    FREQUENCY: "a frequency",
    FORCE: "a force",
    PRESSURE: "a pressure",
    ENERGY: "an energy",
    POWER: "a power",
    CURRENT: "a current",
    VOLTAGE: "a voltage",
    AMOUNT: "an amount of substance",
    divide(MASS, VOLUME): "a density",
    divide(LENGTH, VOLUME): "a distance per volume",
}


def dimension_name(dimension: Dimension) -> str:
    """`a length`, `a speed`; for unnamed dimensions, their powers."""
    return _KINDS.get(dimension) or " ".join(f"{base}^{power}" for base, power in dimension)


_PREFIXES = {
    "Q": ("quetta", 30), "R": ("ronna", 27), "Y": ("yotta", 24), "Z": ("zetta", 21),
    "E": ("exa", 18), "P": ("peta", 15), "T": ("tera", 12), "G": ("giga", 9), "M": ("mega", 6),
    "k": ("kilo", 3), "h": ("hecto", 2), "da": ("deca", 1), "d": ("deci", -1), "c": ("centi", -2),
    "m": ("milli", -3), "µ": ("micro", -6), "n": ("nano", -9), "p": ("pico", -12),
    "f": ("femto", -15), "a": ("atto", -18),
}  # fmt: skip
_BINARY = {"Ki": ("kibi", 1), "Mi": ("mebi", 2), "Gi": ("gibi", 3), "Ti": ("tebi", 4),
           "Pi": ("pebi", 5), "Ei": ("exbi", 6)}  # fmt: skip

_PREFIXED: dict[Dimension, list[str]] = {
    # symbol, value in base units, full names
    LENGTH: ["m 1 meter metre"],
    MASS: ["g 1/1000 gram gramme"],
    TIME: ["s 1 second"],
    VOLUME: ["L 1/1000 liter litre"],
    FREQUENCY: ["Hz 1 hertz"],
    FORCE: ["N 1 newton"],
    PRESSURE: ["Pa 1 pascal", "bar 100000"],
    ENERGY: [
        "J 1 joule",
        "Wh 3600 watthour",
        "cal 4.184 calorie",
        "eV 1.602176634e-19 electronvolt",
    ],
    POWER: ["W 1 watt"],
    CURRENT: ["A 1 ampere amp"],
    VOLTAGE: ["V 1 volt"],
    AMOUNT: ["mol 1 mole"],
    DATA: ["b 1 bit", "B 8 byte"],
}
_PLAIN_UNITS: dict[Dimension, list[str]] = {
    LENGTH: [
        "in 0.0254 inch inches", "ft 0.3048 foot feet", "yd 0.9144 yard", "mi 1609.344 mile",
        "nmi 1852 nauticalmile seamile", "ly 9460730472580800 lightyear", "lightsecond 299792458",
        "au 149597870700 astronomicalunit", "Å 1e-10 angstrom ångström", "furlong 201.168",
        "fathom 1.8288", "pc 30856775814913673 parsec", "kpc 30856775814913673000 kiloparsec",
        "Mpc 30856775814913673000000 megaparsec", "thou 0.0000254 mil", "micron 1e-6",
        "hand 0.1016",
    ],
    MASS: [
        "lb 0.45359237 lbs pound", "oz 0.028349523125 ounce", "st 6.35029318 stone stones",
        "ton 907.18474 shortton uston", "longton 1016.0469088 imperialton", "grain 0.00006479891",
        "ct 0.0002 carat", "troyounce 0.0311034768 ozt", "t 1000 tonne metricton",
        "Mt 1e9 megatonne", "Gt 1e12 gigatonne",
    ],
    TIME: [
        "min 60 minute", "h 3600 hr hrs hour", "d 86400 day", "week 604800 wk",
        "fortnight 1209600", "month 2629746 mo", "year 31556952 yr yrs", "decade 315569520",
        "century 3155695200 centuries", "millennium 31556952000 millennia",
    ],
    AREA: [
        "ha 10000 hectare", "acre 4046.8564224", "sqft 0.09290304", "sqmi 2589988.110336",
        "are 100", "sqm 1", "sqkm 1000000", "sqin 0.00064516", "sqyd 0.83612736",
    ],
    VOLUME: [
        "gal 0.003785411784 gallon usgallon", "qt 0.000946352946 quart", "pt 0.000473176473 pint",
        "cup 0.0002365882365", "floz 0.0000295735295625 fluidounce",
        "tbsp 0.00001478676478125 tablespoon", "tsp 0.00000492892159375 teaspoon",
        "imperialgallon 0.00454609 ukgallon", "imperialpint 0.00056826125 ukpint",
        "bbl 0.158987294928 barrel", "cc 0.000001",
    ],
    SPEED: [
        "mph 0.44704", "kph 5/18 kmh", "kn 463/900 knot kt", "fps 0.3048", "mach 340.29",
        "speedoflight 299792458",
    ],
    FREQUENCY: ["rpm 1/60"],
    FORCE: ["lbf 4.4482216152605 poundforce", "kgf 9.80665 kilogramforce", "dyn 0.00001 dyne"],
    PRESSURE: [
        "atm 101325 atmosphere", "psi 6894.757293168", "mmHg 133.322387415", "torr 20265/152",
        "inHg 3386.388640341",
    ],
    ENERGY: ["BTU 1055.05585262", "therm 105505585.262", "erg 1e-7", "ftlb 1.3558179483314004"],
    POWER: ["hp 745.69987158227022 horsepower", "PS 735.49875 metrichorsepower"],
    ANGLE: [
        "turn 1 revolution", "deg 1/360 degree", "arcmin 1/21600 arcminute",
        "arcsec 1/1296000 arcsecond", "rad 0.159154943091895335768883763372514362034460 radian",
    ],
    divide(DATA, TIME): ["bps 1", "kbps 1000", "Mbps 1000000", "Gbps 1000000000"],
    divide(LENGTH, VOLUME): ["mpg 425143.707430272"],
    PLAIN: ["dozen 12", "percent 1/100", "thousand 1000", "million 1e6", "billion 1e9",
            "trillion 1e12", "ppm 1/1000000"],
}  # fmt: skip
_SHORT_PLURALS = {"day", "ton", "cup", "bar", "bit", "mil", "erg", "are"}
_IRREGULAR = {"foot", "feet", "inches", "hertz", "stones", "centuries", "millennia", "horsepower"}


def _table() -> dict[str, Unit]:
    table: dict[str, Unit] = {}
    for dimension, lines in _PLAIN_UNITS.items():
        for line in lines:
            symbol, factor, *names = line.split()
            unit = Unit("inch" if symbol == "in" else symbol, Fraction(factor), dimension)
            _enter(table, unit, [symbol, *names])
    _enter_temperatures(table)
    for dimension, lines in _PREFIXED.items():  # last: where names clash, `ft` is no femtotonne
        for line in lines:
            _enter_prefixed(table, dimension, line)
    return table


def _enter(table: dict[str, Unit], unit: Unit, names: list[str]) -> None:
    for name in names:
        table.setdefault(name, unit)
        regular = len(name) > 3 and name not in _IRREGULAR and not name.endswith("s")
        if regular or name in _SHORT_PLURALS:
            table.setdefault(name + "s", unit)


def _enter_prefixed(table: dict[str, Unit], dimension: Dimension, line: str) -> None:
    symbol, text, *names = line.split()
    factor = Fraction(text)
    table.setdefault(symbol, Unit(symbol, factor, dimension))
    _enter(table, table[symbol], names)
    scales = [
        (prefix, word, Fraction(10) ** power)
        for prefix, (word, power) in _PREFIXES.items()
        if power >= 3 or dimension != DATA
    ]
    if dimension == DATA:
        scales += [(p, word, Fraction(1024) ** power) for p, (word, power) in _BINARY.items()]
    for prefix, word, scale in scales:
        unit = Unit(prefix + symbol, scale * factor, dimension)
        table.setdefault(unit.name, unit)
        _enter(table, unit, [word + name for name in names or [symbol]])


def _enter_temperatures(table: dict[str, Unit]) -> None:
    kelvin = Unit("K", Fraction(1), TEMPERATURE)
    celsius = Unit("°C", Fraction(1), TEMPERATURE, Fraction("273.15"))
    fahrenheit = Unit("°F", Fraction(5, 9), TEMPERATURE, Fraction("459.67") * Fraction(5, 9))
    rankine = Unit("°R", Fraction(5, 9), TEMPERATURE)
    for unit, word in ((celsius, "celsius"), (fahrenheit, "fahrenheit"), (rankine, "rankine")):
        _enter(table, unit, [unit.name, unit.name[1:], word, f"degree{word}", f"degrees{word}"])
    table["C"], table["F"] = celsius, fahrenheit
    table["centigrade"] = table["degreescentigrade"] = table["degreesC"] = table["degC"] = celsius
    table["degreesF"] = table["degF"] = fahrenheit
    _enter(table, kelvin, ["K", "kelvin", "kelvins"])


def _ignoring_case(table: dict[str, Unit]) -> dict[str, Unit]:
    """Names that mean the same unit in any case."""
    folded: dict[str, Unit] = {}
    clashes: set[str] = set()
    for name, unit in table.items():
        known = folded.setdefault(name.casefold(), unit)
        if known != unit:
            clashes.add(name.casefold())
    return {name: unit for name, unit in folded.items() if name not in clashes}


_UNITS = _table()
_UNITS |= {
    "°": _UNITS["deg"],
    "μm": _UNITS["µm"],
    "um": _UNITS["µm"],
    "us": _UNITS["µs"],
    "ug": _UNITS["µg"],
    "l": _UNITS["L"],
    "ml": _UNITS["mL"],
    "cl": _UNITS["cL"],
    "dl": _UNITS["dL"],
    "hl": _UNITS["hL"],
    "sec": _UNITS["s"],
    "secs": _UNITS["s"],
    "mins": _UNITS["min"],
    "KB": _UNITS["kB"],
    "kbit": _UNITS["kb"],
    "Mbit": _UNITS["Mb"],
    "Gbit": _UNITS["Gb"],
    "kcals": _UNITS["kcal"],
}
_FOLDED = _ignoring_case(_UNITS)
_POWERS = {"square": 2, "sq": 2, "cubic": 3, "cu": 3}


def find(words: str) -> Unit | None:
    """The unit called `words`: symbol, name in singular or plural, `square metres`, `kWh`."""
    parts = words.split()
    joined = "".join(parts)
    unit = _UNITS.get(joined) or _FOLDED.get(joined.casefold()) or _with_power_digit(joined)
    if unit is not None:
        return unit
    if parts and parts[0].lower() in _POWERS:
        inner = find(" ".join(parts[1:]))
        return None if inner is None else _raised(inner, _POWERS[parts[0].lower()], words)
    return _product(parts, words) if len(parts) > 1 else None


def _with_power_digit(name: str) -> Unit | None:
    """`m2` and `cm3`."""
    if name[-1:] not in ("2", "3"):
        return None
    inner = _UNITS.get(name[:-1])
    return None if inner is None else _raised(inner, int(name[-1]), name)


def _raised(unit: Unit, power: int, name: str) -> Unit:
    return Unit(name, unit.factor**power, multiply(PLAIN, unit.dimension, Fraction(power)))


def _product(parts: list[str], name: str) -> Unit | None:
    """`newton metres`: the first words a unit, the rest one."""
    for cut in range(len(parts) - 1, 0, -1):
        left, right = find(" ".join(parts[:cut])), find(" ".join(parts[cut:]))
        if left is not None and right is not None:
            dimension = multiply(left.dimension, right.dimension)
            return Unit(name, left.factor * right.factor, dimension)
    return None


def nearest(word: str) -> str | None:
    """The unit whose name is most like `word`, for a hint."""
    joined = "".join(word.split()).casefold()
    same = sorted({unit.name for name, unit in _UNITS.items() if name.casefold() == joined})
    if same:
        return " or ".join(same)  # case decides: MB or Mb
    names = [name for name in _FOLDED if len(name) > 3]
    close = difflib.get_close_matches(joined, names, n=4, cutoff=0.75)
    swapped = [name for name in close if sorted(name) == sorted(joined)]
    return next(iter(swapped or close), None)
