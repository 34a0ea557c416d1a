"""What an instruction computes, as a symbolic value of its operands; None where that is not modelled."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ptxlint import isa
from ptxlint.analyses.evaluation import OPERATIONS, signed, width
from ptxlint.analyses.value import Algebra, Constant, LeafKind, Value
from ptxlint.ir import Address, Immediate, Instruction, Operand, Pair, Register, Symbol, Vector

Reader = Callable[[Operand], Value | None]
"""The value of an operand where the instruction stands; None for operands without one."""

_RELATIONS = {
    "eq": "eq",
    "ne": "ne",
    "lt": "lt",
    "le": "le",
    "gt": "gt",
    "ge": "ge",
    "lo": "lt",
    "ls": "le",
    "hi": "gt",
    "hs": "ge",
}
_PLAIN = frozenset({"and", "or", "xor", "div", "rem", "min", "max", "popc", "clz", "bfe", "lop3"})
_STABLE_SPACES = frozenset({"param", "const"})


def interpret(instruction: Instruction, register: Register, read: Reader, algebra: Algebra) -> Value | None:
    """The value that an instruction, when it runs, gives to one of the registers that it writes."""
    type_name = _integer_type(instruction)
    if type_name is None:
        return None
    destination = instruction.operands[0]
    arguments = [read(operand) for operand in instruction.operands[1:]]
    match instruction.opcode:
        case "setp":
            return _comparison(instruction, register, arguments, algebra)
        case "elect":
            is_leader = isinstance(destination, Pair) and destination.second == register
            return algebra.apply("elect", "pred") if is_leader else None
        case "shfl":
            return _shuffle(instruction, register, arguments, algebra)
        case "ld":
            return _loaded(instruction, register, algebra)
        case "mov" if isinstance(destination, Vector):
            return _unpacked(destination, register, arguments[0], algebra)
        case "mov" if isinstance(instruction.operands[1], Vector):
            parts = [read(element) for element in instruction.operands[1].elements]
            return _packed(parts, width(type_name) // len(parts), algebra)
    if destination != register or any(argument is None for argument in arguments):
        return None
    return _arithmetic(instruction, type_name, [argument for argument in arguments if argument is not None], algebra)


def _arithmetic(instruction: Instruction, type_name: str, arguments: Sequence[Value], algebra: Algebra) -> Value | None:
    match instruction.opcode, arguments:
        case ("mov", [Constant(bits)]) if type_name == "pred":
            return algebra.constant(int(bits != 0))
        case (("mov" | "cvta"), [only]):
            return only
        case "cvt", [only]:
            return _converted(instruction, only, algebra)
        case "add", [first, second] if "cc" not in instruction.modifiers:
            return algebra.add(first, second)
        case "sub", [first, second] if "cc" not in instruction.modifiers:
            return algebra.total(0, ((first, 1), (second, -1)))
        case "neg", [only]:
            return algebra.scaled(only, -1)
        case (("mul" | "mad"), [first, second, *rest]) if "cc" not in instruction.modifiers:
            product = _product(instruction, type_name, first, second, algebra)
            return algebra.add(product, rest[0]) if rest else product
        case "shl", [first, Constant(places)] if 0 <= places < width(type_name):
            return algebra.scaled(first, 1 << places)
        case "shl", [first, second]:
            return algebra.apply("shl", type_name, first, second)
        case "shr", [first, second]:
            return folded(algebra, "shr", type_name, first, second)
        case "selp", [first, second, condition]:
            return algebra.select(condition, first, second, type_name)
        case "not", [only]:
            return algebra.negation(only) if type_name == "pred" else folded(algebra, "not", type_name, only)
        case opcode, _ if opcode in _PLAIN and len(arguments) == _arity(opcode):
            return folded(algebra, opcode, type_name, *arguments)
    return None


def _arity(opcode: str) -> int:
    return {"popc": 1, "clz": 1, "bfe": 3, "lop3": 4}.get(opcode, 2)


def _integer_type(instruction: Instruction) -> str | None:
    """The last modifier, when it is a predicate or an integer type of at most 64 bits."""
    last = instruction.modifiers[-1] if instruction.modifiers else ""
    if instruction.opcode in ("elect", "setp") or last == "pred":
        return "pred"
    is_integer = last[:1] in ("b", "u", "s") and last[1:].isdigit()
    return last if is_integer and 8 <= int(last[1:]) <= 64 else None


def folded(algebra: Algebra, operation: str, type_name: str, *arguments: Value) -> Value:
    """An operation, computed when all its arguments are constants or one of them decides it."""
    if all(isinstance(argument, Constant) for argument in arguments):
        numbers = (argument.value for argument in arguments if isinstance(argument, Constant))
        return algebra.constant(OPERATIONS[operation](type_name, *numbers))
    match operation, arguments:
        case (("or" | "xor"), (first, Constant(0))):
            return first
        case (("or" | "xor"), (Constant(0), second)):
            return second
        case "and", (Constant(0), _) | (_, Constant(0)):
            return algebra.constant(0)
        case "and", (first, Constant(1)) | (Constant(1), first) if type_name == "pred":
            return first
        case "and" | "or", (first, second) if first is second:
            return first
        case (("and" | "or" | "xor"), (first, second)) if first.serial > second.serial:
            return algebra.apply(operation, type_name, second, first)
    return algebra.apply(operation, type_name, *arguments)


def _product(instruction: Instruction, type_name: str, first: Value, second: Value, algebra: Algebra) -> Value:
    if "hi" in instruction.modifiers:
        return folded(algebra, "mul.hi", type_name, first, second)
    if isinstance(first, Constant) and type_name.startswith("s"):
        first = algebra.constant(signed(first.value, type_name))
    if isinstance(second, Constant) and type_name.startswith("s"):
        second = algebra.constant(signed(second.value, type_name))
    return algebra.multiply(first, second, type_name)


def _converted(instruction: Instruction, value: Value, algebra: Algebra) -> Value | None:
    """An integer conversion. One to or from less than 32 bits cuts; others keep the mathematical value."""
    types = instruction.modifiers[-2:]
    if not all(name[:1] in ("u", "s", "b") and name[1:].isdigit() for name in types):
        return None
    narrow = min(types, key=width)
    if width(narrow) >= 32:
        return value
    return folded(algebra, "extend", narrow, value)


def _comparison(
    instruction: Instruction, register: Register, arguments: Sequence[Value | None], algebra: Algebra
) -> Value | None:
    """One result of setp: the comparison, or for the second of `p|q` its opposite, combined with a predicate."""
    relation, *middle, type_name = instruction.modifiers
    if relation not in _RELATIONS or type_name[:1] not in ("b", "u", "s"):
        return None
    first, second, *rest = arguments
    if first is None or second is None:
        return None
    compared = algebra.compare(_RELATIONS[relation], type_name, first, second)
    destination = instruction.operands[0]
    if isinstance(destination, Pair) and destination.second == register:
        compared = algebra.negation(compared)
    if not middle:
        return compared
    if len(rest) != 1 or rest[0] is None or middle[0] not in ("and", "or", "xor"):
        return None
    return folded(algebra, middle[0], "pred", compared, rest[0])


def _shuffle(
    instruction: Instruction, register: Register, arguments: Sequence[Value | None], algebra: Algebra
) -> Value | None:
    """The result of a shfl that reads one fixed lane."""
    destination = instruction.operands[0]
    result = destination.first if isinstance(destination, Pair) else destination
    if result != register or "idx" not in instruction.modifiers or len(arguments) < 2:
        return None
    source, lane = arguments[:2]
    if source is None or not isinstance(lane, Constant):
        return None
    return source if isinstance(source, Constant) else algebra.apply("lane", "b32", source, lane)


def _loaded(instruction: Instruction, register: Register, algebra: Algebra) -> Value | None:
    """What a load of a kernel parameter or a constant gives: the same at each execution."""
    (access,) = isa.accesses(instruction) or (None,)
    destination, address, *_ = instruction.operands
    if access is None or isa.space(instruction, access) not in _STABLE_SPACES or not isinstance(address, Address):
        return None
    if not isinstance(address.base, Symbol):
        return None
    place = address.base.offset + address.offset
    if isinstance(destination, Vector):
        width_in_bytes = (isa.access_bytes(instruction, access) or 0) // len(destination.elements)
        place += width_in_bytes * destination.elements.index(register)
    return algebra.leaf(LeafKind.PARAMETER, address.base.name, place)


def _unpacked(destination: Vector, register: Register, whole: Value | None, algebra: Algebra) -> Value | None:
    if whole is None:
        return None
    places = destination.elements.index(register) * width(register.type)
    if not places and width(register.type) >= 32:
        return whole
    if isinstance(whole, Constant) or places:
        whole = folded(algebra, "shr", "u64", whole, algebra.constant(places))
    name = f"u{width(register.type)}"
    return folded(algebra, "extend", name, whole)


def _packed(parts: Sequence[Value | None], bits: int, algebra: Algebra) -> Value | None:
    terms = [(part, 1 << bits * place) for place, part in enumerate(parts) if part is not None]
    return algebra.total(0, terms) if len(terms) == len(parts) else None


def immediate(operand: Immediate, algebra: Algebra) -> Value | None:
    """An integer literal."""
    return algebra.constant(operand.value) if isinstance(operand.value, int) else None
