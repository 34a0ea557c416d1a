"""What a rule must state, and when it is told so."""

from __future__ import annotations

import pytest

from ptxlint.rule import IsaRef, Rule, Severity

FIELDS = {
    "__doc__": "A summary.",
    "code": "PTX901",
    "severity": Severity.WARNING,
    "isa": IsaRef("Initializers", since="1.0"),
    "good": ("ret;",),
    "bad": ("ret;",),
}


def test_the_class_name_gives_the_name() -> None:
    assert type("MissingPhaseToggle", (Rule,), FIELDS).name == "missing-phase-toggle"  # type: ignore[attr-defined]


@pytest.mark.parametrize("field", ["code", "severity", "isa", "good", "bad"])
def test_a_missing_field_is_an_error_that_names_file_and_field(field: str) -> None:
    fields = {name: value for name, value in FIELDS.items() if name != field} | {"__module__": __name__}
    with pytest.raises(TypeError, match=rf"test_rule\.py: rule half-a-rule lacks {field}"):
        type("HalfARule", (Rule,), fields)


def test_a_rule_without_docs_is_an_error() -> None:
    with pytest.raises(TypeError, match="lacks docstring"):
        type("Undocumented", (Rule,), FIELDS | {"__doc__": None})


@pytest.mark.parametrize("code", ["901", "PTX1", "ptx901", "PTX9012", ""])
def test_a_malformed_code_is_an_error(code: str) -> None:
    with pytest.raises(TypeError, match="malformed code"):
        type("OddlyCoded", (Rule,), FIELDS | {"code": code})
