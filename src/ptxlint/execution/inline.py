"""A function with the bodies of the functions it calls spliced in, so that no analysis has to follow a call.

Names of the n-th spliced body (its registers, labels, tables and the variables that each call has for itself) end in
`$cN`. A `.shared`, `.global` or `.const` variable exists once however often its function is called: it is named
`variable$function`. Parameters in the parameter space become the caller's argument variables themselves, and these
become `.local`, which is what such a variable is without a call (ptxas 13.0 crashes on a `.param` that no call uses);
register parameters, and arguments that are registers or constants, are moved in before the body and out after it.
Source: PTX ISA, *Control Flow Instructions: call, ret*, *Function Declarations and Definitions*.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import field, replace
from itertools import count

from ptxlint.classes import dataclass
from ptxlint.ir import (
    Address,
    Arguments,
    Element,
    Function,
    Guard,
    Indexed,
    Instruction,
    Label,
    Module,
    Negated,
    Not,
    Operand,
    Pair,
    Register,
    Sink,
    SpecialRegister,
    Symbol,
    Variable,
    Vector,
)
from ptxlint.source import Loc

LARGEST_BODY = 200_000
"""Instructions beyond which no further call is inlined."""

DEEPEST_CALL = 64
"""Nested calls beyond which no further call is inlined."""

_CALL, _RETURN, _BRANCH = "call", "ret", "bra"
_PARAMETER = ("param", "param::func")
_STATIC = ("shared", "global", "const")


def inline(function: Function, module: Module) -> Function:
    """The function without calls to functions of the module that have a body.

    Left as they are: recursive and indirect calls, calls of what has no body or other parameters, calls whose result
    is also an argument, and the calls that would exceed `LARGEST_BODY` or `DEEPEST_CALL`. A function without direct
    calls comes back itself.
    """
    if function.body is None or not any(instruction.opcode == _CALL for instruction in function.body):
        return function
    expansion = _Expansion(_definitions(module), size=len(function.body))
    expansion.splice(function, _Names({}, {}), (function.name,), None, None)
    if expansion.size == len(function.body):
        return function
    variables = (*function.variables, *expansion.variables.values())
    passed = {name for instruction in expansion.body if instruction.opcode == _CALL for name in _passed(instruction)}
    moved = {variable.name for variable in variables if variable.space == "param"} - passed
    return replace(
        function,
        variables=tuple(
            replace(variable, space="local") if variable.name in moved else variable for variable in variables
        ),
        body=tuple([_in_local(instruction, moved) for instruction in expansion.body]),
        labels=expansion.labels,
        tables=expansion.tables,
        prototypes=expansion.prototypes,
        registers=function.registers + tuple(expansion.registers),
        pragmas=expansion.pragmas,
    )


def _passed(call: Instruction) -> Iterator[str]:
    for operand in call.operands:
        if isinstance(operand, Arguments):
            yield from (element.name for element in operand.elements if isinstance(element, Symbol))


def _in_local(instruction: Instruction, moved: set[str]) -> Instruction:
    """The instruction with an access to a moved parameter variable turned into one to local memory."""
    modifiers = instruction.modifiers
    if modifiers and modifiers[0] in _PARAMETER and instruction.opcode in ("ld", "st"):
        for operand in instruction.operands:
            if isinstance(operand, Address) and isinstance(operand.base, Symbol) and operand.base.name in moved:
                return replace(instruction, modifiers=("local", *modifiers[1:]))
    return instruction


def _definitions(module: Module) -> dict[str, Function]:
    """The functions that have a body by name, aliases included."""
    defined = {function.name: function for function in module.functions if function.body is not None}
    aliases = (directive.arguments for directive in module.directives if directive.name == "alias")
    return defined | {alias: defined[target] for alias, target in aliases if target in defined}


@dataclass(frozen=True, slots=True)
class _Names:
    """New names in one spliced body: of symbols and labels by old name, and of registers.

    A suffix of "" leaves registers as they are. `registers` also remembers what has been renamed.
    """

    symbols: dict[str, str]
    registers: dict[str, Register]
    suffix: str = ""

    def symbol(self, name: str) -> str:
        return self.symbols.get(name, name)

    def register(self, register: Register) -> Register:
        if not self.suffix:
            return register
        renamed = self.registers.get(register.name)
        if renamed is None:
            renamed = self.registers[register.name] = Register(register.name + self.suffix, register.type)
        return renamed

    def operand(self, operand: Operand) -> Operand:
        rename = _RENAMED.get(type(operand))
        return rename(self, operand) if rename else operand

    def operands(self, operands: Iterable[Operand]) -> tuple[Operand, ...]:
        known = self.registers
        return tuple(
            [
                (known.get(operand.name) or self.register(operand))
                if type(operand) is Register
                else self.operand(operand)
                for operand in operands
            ]
        )

    def guard(self, guard: Guard | None) -> Guard | None:
        return guard and Guard(self.register(guard.register), guard.negated)


def _within(names: _Names, operand: Operand) -> Operand:
    """An operand that holds others, with their new names."""
    match operand:
        case Address(base=base, offset=offset, rest=rest):
            return Address(names.operand(base), offset, names.operands(rest))
        case Vector(elements=elements):
            return Vector(names.operands(elements))
        case Arguments(elements=elements):
            return Arguments(names.operands(elements))
        case Pair(first=first, second=second):
            return Pair(names.operand(first), names.operand(second))
        case Element(register=register, component=component):
            return Element(names.register(register), component)
        case Not(operand=Register() as register):
            return Not(names.register(register))
        case Negated(operand=Element(register=register, component=component)):
            return Negated(Element(names.register(register), component))
        case Negated(operand=Register() as register):
            return Negated(names.register(register))
        case Indexed(array=array, index=index):
            return Indexed(Symbol(names.symbol(array.name), array.offset), names.operand(index))
    return operand


_RENAMED: dict[type, Callable[[_Names, Operand], Operand]] = {
    Register: lambda names, operand: names.register(operand) if isinstance(operand, Register) else operand,
    Symbol: lambda names, operand: (
        Symbol(names.symbol(operand.name), operand.offset) if isinstance(operand, Symbol) else operand
    ),
    Label: lambda names, operand: Label(names.symbol(operand.name)) if isinstance(operand, Label) else operand,
    **dict.fromkeys((Address, Vector, Arguments, Pair, Element, Not, Negated, Indexed), _within),
}


@dataclass(slots=True)
class _Expansion:
    """The caller's new body while it grows."""

    definitions: dict[str, Function]
    body: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    tables: dict[str, tuple[str, ...]] = field(default_factory=dict)
    prototypes: dict[str, str] = field(default_factory=dict)
    pragmas: dict[int, tuple[str, ...]] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    registers: list[tuple[str, str, int | None]] = field(default_factory=list)
    parameters: set[str] = field(default_factory=set)
    numbers: Iterable[int] = field(default_factory=lambda: count(1))
    size: int = 0

    def splice(
        self, function: Function, names: _Names, chain: tuple[str, ...], call: Loc | None, leave: str | None
    ) -> None:
        """Append the body of `function`. `chain` names the functions being spliced, outermost first; `leave` is the
        label that `ret` goes to, None in the outermost function.
        """
        self.parameters.update(
            names.symbol(variable.name)
            for variable in (*function.parameters, *function.results, *function.variables)
            if variable.space == "param"
        )
        labels: dict[int, list[str]] = {}
        for label, index in function.labels.items():
            labels.setdefault(index, []).append(names.symbol(label))
        locs = _Locs(call)
        body = function.body or ()
        last = len(body) - 1
        for index, instruction in enumerate(body):
            self._mark(labels.get(index, ()), function.pragmas.get(index))
            if leave is None:
                renamed = instruction
            else:
                renamed = Instruction(
                    instruction.opcode,
                    _spliced_modifiers(instruction),
                    names.operands(instruction.operands),
                    names.guard(instruction.guard),
                    instruction.span,
                    locs.of(instruction.loc),
                )
            if instruction.opcode == _RETURN and leave is not None:
                if index != last or instruction.guard is not None:
                    self.body.append(replace(renamed, opcode=_BRANCH, operands=(Label(leave),)))
            elif instruction.opcode != _CALL or not self._call(renamed, chain):
                self.body.append(renamed)
        self._mark(labels.get(last + 1, ()), function.pragmas.get(last + 1))
        self.tables.update(
            (names.symbol(table), tuple(map(names.symbol, entries))) for table, entries in function.tables.items()
        )
        self.prototypes.update((names.symbol(name), text) for name, text in function.prototypes.items())

    def _mark(self, labels: Iterable[str], pragma: tuple[str, ...] | None) -> None:
        """Labels and pragmas of the instruction that comes next."""
        here = len(self.body)
        for label in labels:
            self.labels[label] = here
        if pragma:
            self.pragmas[here] = self.pragmas.get(here, ()) + pragma

    def _call(self, call: Instruction, chain: tuple[str, ...]) -> bool:
        """Splice the callee in; False when the call has to stay."""
        results, target, arguments = _signature(call)
        callee = self.definitions.get(target.name) if isinstance(target, Symbol) else None
        if (
            callee is None
            or callee.body is None
            or callee.name in chain
            or len(chain) > DEEPEST_CALL
            or self.size + _growth(callee) > LARGEST_BODY
            or (len(arguments), len(results)) != (len(callee.parameters), len(callee.results))
            or _overlap(callee, results, arguments)
        ):
            return False
        number = next(iter(self.numbers))
        self.size += _growth(callee)
        names = self._names(callee, f"$c{number}")
        leave, beyond = f"$L__return$c{number}", f"$L__skip$c{number}"
        if call.guard is not None:
            around = Guard(call.guard.register, not call.guard.negated)
            self.body.append(replace(call, opcode=_BRANCH, modifiers=(), operands=(Label(beyond),), guard=around))
        plain = replace(call, guard=None)
        for formal, actual in zip(callee.parameters, arguments, strict=True):
            self._pass(plain, names, formal, actual)
        copies = [
            copy
            for formal, actual in zip(callee.results, results, strict=True)
            for copy in self._result(plain, names, formal, actual)
        ]
        self.splice(callee, names, (*chain, callee.name), call.loc, leave)
        self.registers.extend((register.name, register.type, None) for register in names.registers.values())
        self._mark((leave,), None)
        self.body.extend(copies)
        if call.guard is not None:
            self._mark((beyond,), None)
        return True

    def _names(self, callee: Function, suffix: str) -> _Names:
        """New names for all that the callee declares; its variables become the caller's."""
        symbols = {name: name + suffix for name in (*callee.labels, *callee.tables, *callee.prototypes)}
        for variable in callee.variables:
            if variable.linkage == "extern":
                name = variable.name
            elif variable.space in _STATIC:
                name = f"{variable.name}${callee.name}"
            else:
                name = variable.name + suffix
            symbols[variable.name] = name
            self.variables.setdefault(name, replace(variable, name=name))
        return _Names(symbols, {}, suffix)

    def _pass(self, call: Instruction, names: _Names, formal: Variable, actual: Operand) -> None:
        """Bind a parameter: a variable of the caller by name, any other argument by a copy."""
        is_variable = isinstance(actual, Symbol) and actual.name in self.parameters
        if formal.space == "reg":
            register = names.register(Register(formal.name, formal.type))
            if is_variable:
                self.body.append(_made(call, ("ld", "param", formal.type), register, Address(actual)))
            else:
                self.body.append(_made(call, ("mov", formal.type), register, actual))
        elif is_variable and isinstance(actual, Symbol):
            names.symbols[formal.name] = actual.name
        else:
            place = Address(Symbol(self._scratch(names, formal)))
            if isinstance(actual, Symbol | SpecialRegister):
                register = names.register(Register(formal.name, formal.type))
                self.body.append(_made(call, ("mov", formal.type), register, actual))
                actual = register
            self.body.append(_made(call, ("st", "param", formal.type), place, actual))

    def _result(self, call: Instruction, names: _Names, formal: Variable, actual: Operand) -> list[Instruction]:
        """Bind a result; the copies that have to follow the body."""
        is_variable = isinstance(actual, Symbol)
        if formal.space == "reg":
            register = names.register(Register(formal.name, formal.type))
            if is_variable:
                return [_made(call, ("st", "param", formal.type), Address(actual), register)]
            return [] if isinstance(actual, Sink) else [_made(call, ("mov", formal.type), actual, register)]
        if isinstance(actual, Symbol):
            names.symbols[formal.name] = actual.name
            return []
        place = Address(Symbol(self._scratch(names, formal)))
        return [] if isinstance(actual, Sink) else [_made(call, ("ld", "param", formal.type), actual, place)]

    def _scratch(self, names: _Names, formal: Variable) -> str:
        """A variable of the caller that stands for the formal."""
        name = names.symbols[formal.name] = formal.name + names.suffix
        self.variables[name] = replace(formal, name=name)
        self.parameters.add(name)
        return name


@dataclass(slots=True)
class _Locs:
    """Source positions of a spliced body: each is inlined, outermost, at the call."""

    call: Loc | None
    known: dict[Loc, Loc] = field(default_factory=dict)

    def of(self, loc: Loc | None) -> Loc | None:
        if loc is None or self.call is None:
            return loc
        placed = self.known.get(loc)
        if placed is None:
            placed = self.known[loc] = replace(loc, inlined_at=self.of(loc.inlined_at) or self.call)
        return placed


def _signature(call: Instruction) -> tuple[tuple[Operand, ...], Operand | None, tuple[Operand, ...]]:
    """The results, the target and the arguments of a call; the target of an indirect call is None."""
    lists = [operand.elements for operand in call.operands if isinstance(operand, Arguments)]
    others = [operand for operand in call.operands if not isinstance(operand, Arguments)]
    has_results = bool(call.operands) and isinstance(call.operands[0], Arguments)
    results = lists.pop(0) if has_results else ()
    return results, others[0] if len(others) == 1 else None, lists[0] if lists else ()


def _spliced_modifiers(instruction: Instruction) -> tuple[str, ...]:
    """The modifiers with the space of the callee's parameters, when reached through a register, as it will be."""
    modifiers = instruction.modifiers
    if not any(space in modifiers for space in _PARAMETER):
        return modifiers
    if any(isinstance(operand, Address) and isinstance(operand.base, Symbol) for operand in instruction.operands):
        return modifiers
    return tuple("local" if modifier in _PARAMETER else modifier for modifier in modifiers)


def _growth(callee: Function) -> int:
    """The most instructions that a call of the function turns into: its body, two copies a parameter, the guard."""
    return len(callee.body or ()) + 2 * (len(callee.parameters) + len(callee.results)) + 1


def _overlap(callee: Function, results: tuple[Operand, ...], arguments: tuple[Operand, ...]) -> bool:
    """Whether a variable is both an argument and a result, so that the body cannot work on it in place."""
    return any(
        formal.space == "param" and isinstance(actual, Symbol) and actual in arguments
        for formal, actual in zip(callee.results, results, strict=True)
    )


def _made(call: Instruction, words: tuple[str, ...], *operands: Operand) -> Instruction:
    """An instruction that stands where the call stood."""
    opcode, *modifiers = words
    return Instruction(opcode, tuple(modifiers), operands, None, call.span, call.loc)
