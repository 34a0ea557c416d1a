"""IR -> PTX text that ptxas accepts: scopes flattened, names unique, one statement a line, debug data kept.

Comments, the times and sizes of `.file` and the spelling of constant expressions are not in the IR and not printed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from operator import itemgetter

from ptxlint.ir import Directive, Function, Module, Variable, size_of
from ptxlint.source import Loc

_FIRST_WITH_ADDRESS_SIZE = (2, 3)


def print_module(module: Module) -> str:
    """The module as PTX text."""
    return "".join(f"{line}\n" for line in _module(module))


def print_function(function: Function) -> str:
    """One function as PTX text."""
    return "".join(f"{line}\n" for line in _function(function))


def _module(module: Module) -> Iterator[str]:
    yield f".version {module.version[0]}.{module.version[1]}"
    yield f".target {', '.join(module.target)}"
    if module.version >= _FIRST_WITH_ADDRESS_SIZE:
        yield f".address_size {module.address_size}"
    items: list[tuple[tuple[int, int], Iterator[str]]] = []
    items += [((item.span.line, item.span.column), iter([f"{_variable(item)};"])) for item in module.variables]
    items += [((item.span.line, item.span.column), _function(item)) for item in module.functions]
    items += [((item.span.line, item.span.column), _directive(item)) for item in module.directives]
    for _, lines in sorted(items, key=itemgetter(0)):
        yield from lines
    for number, name in module.files.items():
        yield f'.file {number} "{name}"'


def _directive(directive: Directive) -> Iterator[str]:
    if directive.name == "section":
        name, *flags, data = directive.arguments
        yield f".section {', '.join((name, *flags))}"
        yield data
    else:
        yield f".{directive.name} {', '.join(directive.arguments)};"


def _variable(variable: Variable) -> str:
    words = [f".{word}" for word in (variable.linkage or "").split()] + [f".{variable.space}"]
    pointer = next((item.split() for item in variable.attributes if item.split()[0] == "ptr"), None)
    words += [f".attribute(.{item})" for item in variable.attributes if item.split()[0] != "ptr"]
    if pointer is None and variable.space != "reg" and variable.align != size_of(variable.type):
        words.append(f".align {variable.align}")
    words.append(_type(variable.type))
    if pointer is not None:
        words += [".ptr", *(f".{word}" for word in pointer[1:2] if word != "generic")]
        words += [f".align {word}" for word in pointer[3:4]]
    extents = "".join(f"[{extent or ''}]" for extent in variable.dimensions)
    value = f" = {variable.initializer}" if variable.initializer else ""
    return " ".join((*words, f"{variable.name}{extents}{value}"))


def _function(function: Function) -> Iterator[str]:
    yield from _header(function)
    if function.body is None:
        yield ";"
        return
    yield "{"
    yield from _declarations(function)
    yield from _body(function)
    yield "}"


def _header(function: Function) -> Iterator[str]:
    words = [f".{word}" for word in (function.linkage or "").split()]
    words.append(".entry" if function.is_entry else ".func")
    attributes = [each for each in function.directives if each.name == "attribute"]
    words += [f".attribute(.{item})" for each in attributes for item in each.arguments]
    if function.results:
        words.append(f"({', '.join(map(_variable, function.results))})")
    yield " ".join((*words, f"{function.name}("))
    for index, parameter in enumerate(function.parameters):
        yield f"\t{_variable(parameter)}{',' if index < len(function.parameters) - 1 else ''}"
    yield ")"
    for directive in function.directives:
        if directive.name != "attribute":
            end = ";" if directive.name == "pragma" else ""
            yield f".{directive.name} {', '.join(directive.arguments)}".rstrip() + end


def _declarations(function: Function) -> Iterator[str]:
    for name, type_, count in function.registers:
        yield f"\t.reg {_type(type_)} {name}{'' if count is None else f'<{count}>'};"
    for variable in function.variables:
        yield f"\t{_variable(variable)};"
    for name, prototype in function.prototypes.items():
        yield f"{name}: .callprototype {prototype};"
    for name, targets in function.tables.items():
        kind = "branchtargets" if all(target in function.labels for target in targets) else "calltargets"
        yield f"{name}: .{kind} {', '.join(targets)};"


def _type(type_: str) -> str:
    return " ".join(f".{word}" for word in type_.split("."))


def _body(function: Function) -> Iterator[str]:
    assert function.body is not None
    labels = _labels_by_index(function)
    loc: Loc | None = None
    for index, instruction in enumerate(function.body):
        yield from _marks(function, labels, index)
        if instruction.loc is not None and instruction.loc != loc:
            yield from _locs(instruction.loc)
            loc = instruction.loc
        yield f"\t{instruction}"
    yield from _marks(function, labels, len(function.body))


def _labels_by_index(function: Function) -> Mapping[int, list[str]]:
    by_index: defaultdict[int, list[str]] = defaultdict(list)
    for label, index in function.labels.items():
        by_index[index].append(label)
    return by_index


def _marks(function: Function, labels: Mapping[int, list[str]], index: int) -> Iterator[str]:
    for label in labels.get(index, ()):
        yield f"{label}:"
    pragmas = function.pragmas.get(index)
    if pragmas:
        yield "\t.pragma " + ", ".join(f'"{text}"' for text in pragmas) + ";"


def _locs(loc: Loc) -> Iterator[str]:
    """The run of `.loc` that says where an instruction comes from: the outermost call first."""
    if loc.inlined_at is not None:
        yield from _locs(loc.inlined_at)
    name = ""
    if loc.function is not None:
        label, offset = loc.function
        name = f", function_name {label}{f'+{offset}' if offset else ''}"
    caller = loc.inlined_at
    at = f", inlined_at {caller.file} {caller.line} {caller.column}" if caller is not None else ""
    yield f"\t.loc {loc.file} {loc.line} {loc.column}{name}{at}"
