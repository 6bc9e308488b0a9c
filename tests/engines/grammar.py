"""Random programs: lines of jnp and lax over values of every kind and shape.

    v5 = jnp.where(v1 > v3, v3, c2)        each line uses inputs, constants and earlier lines

`exact` lines give the same bits in every evaluator; the others are elementary functions. A real is `tame` if it is a small whole number, NaN or
infinite: sums and products of those are exact in any order, fused or not, so whole programs of them have one right answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.engines.templates import ALONG, BINARY, CONTROL, ELEMENTARY, PUTTING, SHAPING, TAKING, UNARY, WILD_BINARY, WILD_UNARY

REALS = ("float64", "float32")
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
LIMIT = {"float64": 2.0**50, "float32": 2.0**20}
ROWS = 5  # trajectories
KINDS_OF_LINES = (
    *("unary", "unary", "binary", "binary", "binary", "convert", "where", "along", "along", "shaping", "taking", "taking"),
    *("putting", "control", "dot", "bits"),
)


@dataclass
class Value:
    """What a program knows of a name: type, a bound if it is tame, and whether it is a constant."""

    name: str
    aval: Any
    bound: float | None = None
    constant: bool = False

    @property
    def kind(self) -> str:
        return np.dtype(self.aval.dtype).kind.replace("u", "i")

    @property
    def dtype(self) -> str:
        return np.dtype(self.aval.dtype).name

    @property
    def shape(self) -> tuple:
        return self.aval.shape


@dataclass
class Line:
    value: Value
    text: str
    uses: tuple[str, ...]
    exact: bool = True
    signed: bool = True  # whether the sign of a zero is defined
    by_xla: bool = True  # whether XLA rounds it as it should: a divisor that many share may become its reciprocal


@dataclass
class Program:
    inputs: dict[str, np.ndarray] = field(default_factory=dict)  # rows along the first axis
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)

    def text(self, lines: list[Line] | None = None) -> str:
        lines = self.lines if lines is None else lines
        used = {name for line in lines for name in line.uses}
        given = [f"{name} = np.array({x.tolist()}, '{x.dtype}')" for name, x in self.constants.items() if name in used and x.size < 40]
        shapes = [f"# {name}: {x.dtype}{list(x.shape[1:])}" for name, x in self.inputs.items() if name in used]
        return "\n".join([*shapes, *given, *(f"{line.value.name} = {line.text}" for line in lines)])

    def slice(self, last: Line) -> list[Line]:
        """The lines on which one depends."""
        wanted, found = {last.value.name}, []
        for line in reversed(self.lines[: self.lines.index(last) + 1]):
            if line.value.name in wanted:
                wanted |= set(line.uses)
                found.append(line)
        return found[::-1]


def carry_out(text: str, env: dict) -> Any:
    return eval(text, {"jnp": jnp, "lax": lax, "np": np, "jax": jax} | env)


def special(dtype: str, random: np.random.Generator, shape: tuple, tame: bool, subnormal: bool) -> np.ndarray:
    """Numbers of which many are unusual."""
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return random.random(shape) < 0.5
    if kind.kind in "iu":
        info = np.iinfo(kind)
        odd = [info.min, info.min + 1, info.max, info.max - 1, info.max // 2, 0, 0, 1, 2, 3, 5, 7, *([-1, -1, -2, -3] if info.min else [9])]
        return np.array(odd, kind)[random.integers(len(odd), size=shape)]
    whole = random.integers(-4, 5, size=shape).astype(kind)
    if tame:
        odd = np.array([np.nan, np.inf, -np.inf, -0.0], kind)
        return np.where(random.random(shape) < 0.15, odd[random.integers(4, size=shape)], whole)
    info = np.finfo(kind)
    odd = [
        np.nan,
        np.inf,
        -np.inf,
        0,
        -0.0,
        info.max,
        -info.max,
        info.tiny * 2,
        0.5,
        -0.5,
        1.5,
        2.5,
        1e10,
        -3e9,
        255.5,
        127.9,
        -129.0,
        1e-5,
        0.1,
        -0.3,
    ]
    odd += [info.smallest_subnormal, -info.tiny / 4] if subnormal else []
    values = np.where(random.random(shape) < 0.4, np.array(odd, kind)[random.integers(len(odd), size=shape)], random.normal(size=shape) * 3)
    return np.where(random.random(shape) < 0.2, whole, values).astype(kind)


class Writer:
    """Writes one program. `tame`: reals are whole, and nothing is rounded."""

    def __init__(self, seed: int, tame: bool, length: int = 14):
        self.random, self.tame = np.random.default_rng([seed, tame]), tame
        self.program, self.values = Program(), []
        r = self.random
        self.large = seed % 8 == 7  # arrays that do not fit into registers
        n, m = (40, 30) if self.large else (int(r.choice([0, 1, 2, 3, 3, 5])), int(r.choice([1, 2, 3, 4])))
        self.shapes = [(n,), (m,), (n, m), (1, m), (n, 1), (), (m, m)]
        self.subnormal = not tame and r.random() < 0.2
        real, integers = str(r.choice(REALS)), [str(x) for x in r.choice(INTEGERS, 2)]
        kinds = [real, real, real, integers[0], integers[0], integers[1], "bool", "int32"]
        for k, dtype in enumerate(kinds):
            self._given(f"x{k}", dtype, self._pick(self.shapes), constant=False)
        for k, dtype in enumerate([real, integers[0], "int32", "bool"]):
            self._given(f"c{k}", dtype, self._pick(self.shapes), constant=True)
        self._given("s", "int32", (), constant=False)
        for _ in range(6 * length):
            if len(self.program.lines) == length:
                break
            self._line()

    def _pick(self, options: Any) -> Any:
        return options[int(self.random.integers(len(options)))]

    def _given(self, name: str, dtype: str, shape: tuple, constant: bool) -> None:
        whole = special(dtype, self.random, shape if constant else (ROWS, *shape), self.tame or self.random.random() < 0.3, self.subnormal)
        if constant and whole.dtype.kind == "f":
            whole = np.where(whole == 0, whole.dtype.type(2), whole)  # products with a constant zero are zero, whatever the other factor is
        (self.program.constants if constant else self.program.inputs)[name] = whole
        small = not whole.size or whole.dtype.kind != "f" or not (np.abs(np.where(np.isfinite(whole), whole, 0)) > 4).any()
        whole_numbers = whole.dtype.kind == "f" and small and (np.nan_to_num(whole, posinf=0, neginf=0) % 1 == 0).all()
        self.values.append(Value(name, jax.ShapeDtypeStruct(shape, np.dtype(dtype)), 4.0 if whole_numbers else None, constant))

    def _some(self, kind: str, like: Value | None = None, least: int = 0, shape: Any = None) -> Value | None:
        """A value of a kind, of the type of another, with so many axes at least."""
        fits = [v for v in self.values if v.kind in kind and (like is None or v.dtype == like.dtype) and len(v.shape) >= least]
        fits = fits if shape is None else [v for v in fits if v.shape == shape]
        return self._pick(fits) if fits else None

    def _line(self) -> None:
        draft = getattr(self, f"_{self._pick(KINDS_OF_LINES)}")()
        if draft is None:
            return
        template, used, options = draft
        try:
            text = template.format(**{key: v.name if isinstance(v, Value) else v for key, v in used.items()})
            names = {v.name: v for v in used.values() if isinstance(v, Value)}
            env = {name: v.aval for name, v in names.items()}
            out = jax.eval_shape(lambda **given: carry_out(text, given), **env)
        except Exception:  # JAX does not take it: shapes that do not fit, types without this operation
            return
        if not isinstance(out, jax.ShapeDtypeStruct) or out.size > 2500 or len(out.shape) > 3 or out.dtype.name == "float16":
            return
        name = f"v{len(self.program.lines)}"
        bound = options.pop("bound", max((v.bound or 0.0 for v in names.values()), default=0.0))
        if np.dtype(out.dtype).kind == "f":
            if bound is not None and bound > LIMIT[np.dtype(out.dtype).name]:
                return
            tame = all(v.bound is not None for v in names.values() if v.kind == "f") and not options.get("wild") and options.get("exact", True)
            bound = bound if tame else None
            if self.tame and bound is None:
                return
        options.pop("wild", None)
        value = Value(name, out, bound if np.dtype(out.dtype).kind == "f" else None)
        self.program.lines.append(Line(value, text, tuple(names), **options))
        self.values.append(value)

    def _unary(self):
        a = self._some("fib")
        if a.kind == "f" and not self.tame and self.random.random() < 0.6:
            if self.random.random() < 0.5:
                return self._pick(ELEMENTARY), {"a": a, "b": self._some("f", a)}, {"exact": False}
            return self._pick(WILD_UNARY), {"a": a}, {"wild": True}
        return self._pick(UNARY[a.kind]), {"a": a}, {}

    def _binary(self):
        a = self._some("fib")
        b = self._some(a.kind, a)
        if a.kind == "f" and not self.tame and self.random.random() < 0.4:
            template = self._pick(WILD_BINARY)
            return template, {"a": a, "b": b}, {"wild": True, "by_xla": "/" not in template and "%" not in template}
        template = self._pick(BINARY[a.kind])
        bound = (a.bound or 0) * (b.bound or 0) if "*" in template else (a.bound or 0) + (b.bound or 0)
        return template, {"a": a, "b": b}, {"bound": bound}

    def _convert(self):
        a = self._some("fib")
        to = str(self._pick([*REALS, *INTEGERS, "bool"]))
        # A large integer as a real is no small number.
        tame = a.kind == "b" or (a.kind == "i" and np.dtype(a.dtype).itemsize == 1) or a.kind == "f"
        return f"{{a}}.astype('{to}')", {"a": a}, {"bound": a.bound or 256.0, "wild": not tame or (to == "float32" and a.bound is None)}

    def _where(self):
        a = self._some("fib")
        b, c, p = self._some(a.kind, a), self._some(a.kind, a), self._some("b")
        return self._pick(["jnp.where({p}, {a}, {b})", "jnp.clip({a}, {b}, {c})", "lax.clamp({b}, {a}, {c})"]), {"a": a, "b": b, "c": c, "p": p}, {}

    def _along(self):
        a = self._some("fib", least=1)
        template = self._pick(ALONG[a.kind])
        summed = a.kind == "f" and any(word in template for word in ("sum", "prod"))
        if summed and a.bound is None:
            return None
        count = max(a.shape, default=1)
        bound = (
            None
            if a.bound is None
            else a.bound**count
            if "prod" in template and count <= 3
            else a.bound * 1e30
            if "prod" in template
            else a.bound * max(count, 1)
        )
        return template, {"a": a, "k": int(self.random.integers(len(a.shape)))}, {"bound": bound, "signed": not summed}

    def _shaping(self):
        a = self._some("fib")
        return self._pick(SHAPING), {"a": a, "b": self._some(a.kind, a)}, {}

    def _places(self) -> Value:
        """Indices; XLA takes the lower half of those with 64 bits."""
        return self._pick([v for v in self.values if v.kind == "i" and np.dtype(v.dtype).itemsize < 8])

    def _scalar(self) -> Value:
        return self._pick([v for v in self.values if v.kind == "i" and not v.shape and np.dtype(v.dtype).itemsize < 8])

    def _taking(self):
        a, fill = self._some("fib", least=1), self._pick([0, 1, 2])
        return self._pick(TAKING), {"a": a, "i": self._places(), "f": fill, "s": self._scalar()}, {}

    def _putting(self):
        a = self._some("fi", least=1)
        if self.large:  # each number that is put somewhere is written out
            return None
        template, b = self._pick(PUTTING), self._some(a.kind, a)
        inexact = a.kind == "f" and ("add" in template or "multiply" in template)
        if inexact and (a.bound is None or b.bound is None):
            return None
        bound = (
            None
            if a.bound is None or b.bound is None
            else (a.bound or 1) * (b.bound or 1) ** 8
            if "multiply" in template
            else a.bound + 1500 * b.bound
        )
        return (
            template,
            {"a": a, "b": b, "i": self._places(), "s": self._scalar()},
            {"bound": bound if inexact else a.bound, "signed": not inexact},
        )

    def _control(self):
        a = self._some("fib", least=1)
        used = {"a": a, "s": self._some("i", shape=()), "p": self._some("b", shape=())}
        used["w"] = self._pick([v for v in self.values if v.kind == "i" and len(v.shape) == 1 and v.shape[0] <= 5] or [None])
        template = self._pick(CONTROL)
        needed = {key: v for key, v in used.items() if f"{{{key}}}" in template}
        zero_added = a.kind == "f" and "shape[0] + {a}" in template  # 0 + −0 is 0, and −0 in machine code
        return None if None in needed.values() else (template, needed, {"signed": False} if zero_added else {})

    def _dot(self):
        a = self._some("fib", least=1)
        b = self._some(a.kind, a, least=1)
        if a.kind == "f" and (a.bound is None or b.bound is None):
            return None
        kind = a.kind == "i" and self.random.random() < 0.5
        template = "jnp.matmul({a}, {b}, preferred_element_type='int64')" if kind else "{a} @ {b}"
        return template, {"a": a, "b": b}, {"bound": (a.bound or 0) * (b.bound or 0) * max(*a.shape, 1), "signed": False}

    def _bits(self):
        a = self._some("fi")
        to = self._pick([*INTEGERS, *([] if self.tame else REALS)])
        if self.large or (self.tame and a.kind == "f"):  # the sign of a zero would be seen
            return None
        return f"lax.bitcast_convert_type({{a}}, '{to}')", {"a": a}, {"wild": True}


def write(seed: int, tame: bool) -> Program:
    return Writer(seed, tame).program
