"""Declarations -> variables with their sizes, and the types of registers."""

from __future__ import annotations

import re
from dataclasses import replace
from math import prod

from ptxlint.ir import Variable, size_of
from ptxlint.parse.constants import NotConstantError, fold, integer
from ptxlint.parse.nodes import Declaration, Declarator, Expression, Prototype
from ptxlint.source import PtxSyntaxError


def variables(declaration: Declaration) -> list[Variable]:
    """The variables of a declaration, with sizes and alignment in bytes. Raises PtxSyntaxError."""
    kinds = {modifier.kind: modifier.value for modifier in declaration.modifiers}
    type_ = register_type(declaration)
    element = size_of(type_)
    pointer = "ptr" in kinds
    attributes = [item for each in declaration.modifiers if each.kind == "attribute" for item in each.value.split(";")]
    if pointer:
        attributes.append(f"ptr {kinds['ptr']}" + (f" align {kinds['align']}" if "align" in kinds else ""))
    align = element if pointer or "align" not in kinds else integer(kinds["align"])
    return [
        Variable(
            name=str(declarator.name),
            space=declaration.space,
            type=type_,
            align=align,
            size=element * prod(extents),
            linkage=" ".join(declaration.linkage) or None,
            initializer=" ".join(declarator.initializer[1:].split()) if declarator.initializer else None,
            attributes=tuple(attributes),
            dimensions=extents,
            span=declarator.name.span,
        )
        for declarator in declaration.declarators
        for extents in [_dimensions(declarator)]
    ]


def renamed(variable: Variable, name: str) -> Variable:
    """The same variable under its unique name."""
    return variable if variable.name == name else replace(variable, name=name)


def prototype_text(prototype: Prototype) -> str:
    """What follows `.callprototype`, in one spelling."""
    results = ", ".join(map(_parameter_text, prototype.results))
    parameters = ", ".join(map(_parameter_text, prototype.parameters))
    settings = "".join(f" .{setting.name} {', '.join(setting.arguments)}".rstrip() for setting in prototype.settings)
    return f"({results}) _ ({parameters}){settings}"


def _parameter_text(declaration: Declaration) -> str:
    declarator = declaration.declarators[0]
    extents = _dimensions(declarator)
    pieces = [f".align {item.value}" if item.kind == "align" else f".{item.value}" for item in declaration.modifiers]
    return (
        " ".join((f".{declaration.space}", *pieces))
        + f" {declarator.name}"
        + "".join(f"[{extent or ''}]" for extent in extents)
    )


def register_type(declaration: Declaration) -> str:
    """The type that a declaration names, `v4.f32` for vectors. Raises PtxSyntaxError."""
    kinds = {modifier.kind: modifier.value for modifier in declaration.modifiers}
    if "type" not in kinds:
        raise PtxSyntaxError(declaration.start.span, "the declaration names no type, such as '.b32'")
    return f"{kinds['vector']}.{kinds['type']}" if "vector" in kinds else kinds["type"]


def _dimensions(declarator: Declarator) -> tuple[int, ...]:
    return tuple(_extent(declarator, position) for position in range(len(declarator.dimensions)))


def _extent(declarator: Declarator, position: int) -> int:
    size: Expression | None = declarator.dimensions[position]
    if size is None:
        return _items(declarator.initializer) if declarator.initializer and position == 0 else 0
    try:
        value = fold(size)
    except NotConstantError:
        raise PtxSyntaxError(declarator.name.span, "the extent of an array must be a constant") from None
    if not isinstance(value, int) or value < 0:
        raise PtxSyntaxError(declarator.name.span, "the extent of an array must be a whole number")
    return value


def _items(initializer: str) -> int:
    """How many elements the outer braces of an initializer hold."""
    depth = 0
    items = 0
    filled = False
    for piece in re.findall(r"[{},()]|[^{},()\s]+", initializer):
        if piece in "{(":
            filled = filled or depth > 0
            depth += 1
        elif piece in "})":
            depth -= 1
        elif piece == ",":
            items += depth == 1 and filled
            filled = filled and depth != 1
        else:
            filled = True
    return items + filled
