"""The instruction table: well formed, complete for what the analyses ask, and right where ptxas can show it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxlint import isa
from ptxlint.ir import (
    Address,
    Element,
    Guard,
    Immediate,
    Instruction,
    Not,
    Operand,
    Pair,
    Register,
    Sink,
    Symbol,
    Vector,
)
from ptxlint.isa.operands import KINDS, alternatives
from ptxlint.parse import parse
from ptxlint.source import PtxSyntaxError, Span

REGISTERS = ".reg .pred %p<9>; .reg .b16 %rs<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .b128 %rq<3>;"
TARGETS = {75: (6, 3), 80: (7, 0), 90: (7, 8), 100: (8, 6), 103: (8, 8)}
VERSIONS = [(6, 3), (6, 4), (6, 5), *((7, n) for n in range(9)), *((8, n) for n in range(9)), (9, 0)]

Version = tuple[int, int]


def _module(lines: Iterable[str], version: Version, target: str) -> str:
    """One kernel a line, each on its own line of the module, the first on line 4."""
    registers = REGISTERS if version >= (8, 3) else REGISTERS.partition(".reg .b128")[0]
    kernels = "".join(f".entry k{n}() {{ {registers} {line}; ret; }}\n" for n, line in enumerate(lines))
    return f".version {version[0]}.{version[1]}\n.target {target}\n.address_size 64\n{kernels}"


def _instructions(lines: Iterable[str]) -> list[Instruction]:
    functions = parse(_module(lines, (9, 0), "sm_100a")).functions
    return [function.body[0] for function in functions if function.body]


def _instruction(line: str) -> Instruction:
    return _instructions([line])[0]


FORMS = Path(__file__).with_name("isa_forms.txt").read_text().splitlines()
TEXTS, ROLES = zip(*(map(str.strip, form.split("//")) for form in FORMS), strict=True)


def _first_forms() -> dict[isa.Row, str]:
    """The first form of each row: the plainest, so that nothing but the row says what it requires."""
    forms: dict[isa.Row, str] = {}
    for line, instruction in zip(TEXTS, _instructions(TEXTS), strict=True):
        row = isa.row(instruction)
        assert row is not None, line
        forms.setdefault(row, line)
    return forms


def test_every_row_is_well_formed() -> None:
    for row in isa.ROWS:
        assert re.fullmatch(r"[A-Z][\w -]+: \S.*", row.section), row
        assert (1, 0) <= row.since <= (9, 5), row
        for slots in alternatives(row.operands):
            roles = [slot.role for slot in slots]
            assert len(set(roles)) == len(roles), row
            assert {slot.kind for slot in slots} <= {"", *KINDS}, row
        named = {slot.role for slots in alternatives(row.operands) for slot in slots}
        assert {access.role for access in row.accesses} <= named, row
        assert {access.size for access in row.accesses} <= named | {None}, row
        assert not (row.opens or row.commits or row.waits) or row.is_asynchronous_machinery, row


def test_no_two_rows_are_selected_by_the_same_modifiers() -> None:
    keys = [(row.name, row.requires) for row in isa.ROWS]
    assert sorted(keys) == sorted(set(keys))


@pytest.mark.parametrize(("line", "roles"), list(zip(TEXTS, ROLES, strict=True)), ids=TEXTS)
def test_each_form_has_its_roles(line: str, roles: str) -> None:
    instruction = _instruction(line)
    assert " ".join(isa.roles(instruction)) == roles
    assert isa.fits(instruction)


def test_every_row_of_the_asynchronous_machinery_has_a_form() -> None:
    shown = set(_first_forms())
    assert [row for row in isa.ROWS if row.is_asynchronous_machinery and row.since <= (9, 0) and row not in shown] == []


def _corpus() -> list[Path]:
    """The PTX of the fixtures, or that under the folder which PTXLINT_CORPUS names."""
    folder = os.environ.get("PTXLINT_CORPUS") or Path(__file__).parents[1] / "fixtures"
    return sorted(Path(folder).rglob("*.ptx"))


def test_every_instruction_of_real_ptx_has_a_row_and_a_reading() -> None:
    misfits: dict[str, str] = {}
    for path in _corpus():
        try:
            functions = parse(path.read_text()).functions
        except PtxSyntaxError:
            continue
        for function in functions:
            misfits |= {
                f"{i.name} {len(i.operands)}": f"{path}:{i.span}: {i}" for i in function.body or () if not isa.fits(i)
            }
    assert list(misfits.values()) == []


def _assemble(lines: list[str], version: Version, target: str) -> dict[str, str]:
    """What ptxas says against each line that it refuses."""
    command = ["ptxas", "-arch", target, "-o", "/dev/null", "-"]
    result = subprocess.run(command, input=_module(lines, version, target), text=True, capture_output=True, check=False)
    said = re.findall(r"line (\d+); (?:error|fatal)\s*: (.*)", result.stderr)
    return {lines[int(number) - 4]: message for number, message in reversed(said) if int(number) - 4 < len(lines)}


def _refused(lines: list[str], version: Version, target: str) -> dict[str, str]:
    """The same for every line: ptxas may stop early, so what it refused is left out and the rest tried again."""
    refused: dict[str, str] = {}
    rest = lines
    while rest:
        found = _assemble(rest, version, target)
        if not found:
            break
        refused |= found
        rest = [line for line in rest if line not in found]
    return refused


def _target(row: isa.Row) -> tuple[str, Version]:
    """The least target that ptxas 13.0 knows and the row allows, and the PTX version that brought it."""
    number = next(number for number in TARGETS if number >= row.sm)
    arch_specific = row.is_arch_specific
    return f"sm_{number}{'a' if arch_specific else ''}", (8, 0) if arch_specific and number == 90 else TARGETS[number]


def _grouped(cases: Iterable[tuple[str, Version, str]]) -> dict[tuple[Version, str], list[str]]:
    groups: dict[tuple[Version, str], list[str]] = {}
    for line, version, target in cases:
        groups.setdefault((version, target), []).append(line)
    return groups


needs_ptxas = pytest.mark.skipif(shutil.which("ptxas") is None, reason="ptxas is not installed")


@needs_ptxas
def test_ptxas_accepts_every_form() -> None:
    rows = zip(TEXTS, map(isa.row, _instructions(TEXTS)), strict=True)
    at_home = ((line, (9, 0), _target(row)[0] if row and row.is_arch_specific else "sm_100") for line, row in rows)
    refused = [_refused(lines, *where) for where, lines in _grouped(at_home).items()]
    assert [group for group in refused if group] == []


@needs_ptxas
def test_ptxas_accepts_each_row_from_its_version_and_target_on() -> None:
    at_first = ((line, max(row.since, _target(row)[1]), _target(row)[0]) for row, line in _first_forms().items())
    refused = [_refused(lines, *where) for where, lines in _grouped(at_first).items()]
    assert [group for group in refused if group] == []


@needs_ptxas
def test_ptxas_refuses_each_row_before_its_version() -> None:
    before = [
        (line, VERSIONS[VERSIONS.index(row.since) - 1], _target(row)[0])
        for row, line in _first_forms().items()
        if row.since > _target(row)[1]
    ]
    accepted = [
        (line, where) for where, lines in _grouped(before).items() for line in set(lines) - set(_refused(lines, *where))
    ]
    assert len(before) > 30
    assert accepted == []


@needs_ptxas
def test_ptxas_refuses_each_row_below_its_target() -> None:
    below = [
        (line, (9, 0), f"sm_{row.sm}" if row.is_arch_specific else f"sm_{max(n for n in TARGETS if n < row.sm)}")
        for row, line in _first_forms().items()
        if row.sm > min(TARGETS)
    ]
    accepted = [
        (line, where) for where, lines in _grouped(below).items() for line in set(lines) - set(_refused(lines, *where))
    ]
    assert len(below) > 60
    assert accepted == []


def _names(registers: tuple[Register, ...]) -> str:
    return " ".join(register.name.removeprefix("%") for register in registers)


@pytest.mark.parametrize(
    ("line", "reads", "writes"),
    [
        ("@!%p1 ld.shared.v2.u32 {%r1, %r2}, [%r3+8]", "p1 r3", "r1 r2"),
        ("st.shared.v2.u32 [%r3], {%r1, %r2}", "r3 r1 r2", ""),
        ("setp.lt.and.u32 %p1|%p2, %r1, %r1, !%p3", "r1 p3", "p1 p2"),
        ("elect.sync _|%p1, %r2", "r2", "p1"),
        ("mbarrier.arrive.shared.b64 _, [%r1]", "r1", ""),
        ("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], %r2", "r1 r2", ""),
        ("wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8 {%r1, %r2}, %rd1, %rd2, %p1", "r1 r2 rd1 rd2 p1", "r1 r2"),
        ("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {%r2, %r3}], [%r1]", "rd1 r2 r3 r1", ""),
        ("vadd.u32.u32.u32 %r1.b0, %r2.h1, %r3, %r4", "r1 r2 r3 r4", "r1"),
        ("new_opcode.b32 %r1, %r2, [%rd1]", "r2 rd1", "r1"),
    ],
)
def test_registers_read_and_written(line: str, reads: str, writes: str) -> None:
    instruction = _instruction(line)
    assert (_names(isa.reads(instruction)), _names(isa.writes(instruction))) == (reads, writes)


@pytest.mark.parametrize(
    ("line", "accesses"),
    [
        ("ld.shared.v4.b32 {%r1, %r2, %r3, %r4}, [%r5]", "address read generic shared::cta 16"),
        ("st.b8 [%rd1], %rs1", "address write generic generic 1"),
        ("ld.param::entry.b128 %rq1, [%rd1]", "address read generic param 16"),
        ("ld.const.f32 %f1, [%rd1]", "address read generic const 4"),
        ("ld.global.nc.v2.f16x2 {%r1, %r2}, [%rd1]", "address read texture global 8"),
        ("atom.shared::cluster.cas.b64 %rd1, [%r1], %rd2, %rd3", "address update generic shared::cluster 8"),
        ("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2, %r3, %r4}, [%r5]", "address read generic shared::cta 16"),
        (
            "cp.async.cg.shared.global [%r1], [%rd1], 16, %r2",
            "destination write generic shared::cta 16, source read generic global 16",
        ),
        (
            "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r1], [%r3], %r4, [%r2]",
            "destination write async shared::cluster None, source read async shared::cta None, "
            "mbarrier object generic shared::cluster 8",
        ),
        (
            "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd1, {%r2}], [%r1]",
            "destination write async global None, destination read tensormap generic 128, "
            "source read async shared::cta None",
        ),
        (
            "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8 {%r1, %r2}, {%r3, %r4}, %rd2, %p1",
            "b read async shared::cta None",
        ),
        (
            "tcgen05.mma.cta_group::1.kind::f16 [%r1], [%r3], %rd2, %r2, %p1",
            "taddr update tensor memory tensor None, a read tensor memory tensor None, b read async shared::cta None",
        ),
        ("mbarrier.inval.b64 [%rd1]", "mbarrier object generic generic 8"),
        ("add.u32 %r1, %r2, %r3", ""),
    ],
)
def test_accesses(line: str, accesses: str) -> None:
    instruction = _instruction(line)
    found = (
        f"{a.role} {a.mode} {a.proxy} {isa.space(instruction, a)} {isa.access_bytes(instruction, a)}"
        for a in isa.accesses(instruction)
    )
    assert ", ".join(found) == accesses


@pytest.mark.parametrize(
    ("line", "semantics", "scope"),
    [
        ("ld.global.u32 %r1, [%rd1]", "weak", None),
        ("ld.volatile.global.u32 %r1, [%rd1]", "relaxed", "sys"),
        ("ld.acquire.gpu.global.u32 %r1, [%rd1]", "acquire", "gpu"),
        ("atom.global.add.u32 %r1, [%rd1], %r2", "relaxed", "gpu"),
        ("mbarrier.arrive.shared.b64 _, [%r1]", "release", "cta"),
        ("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r1]", "release", "cluster"),
        ("mbarrier.try_wait.parity.shared.b64 %p1, [%r1], 0", "acquire", "cta"),
        ("mbarrier.try_wait.parity.relaxed.cluster.shared.b64 %p1, [%r1], 0", "relaxed", "cluster"),
        ("bar.cta.sync 0", "acq_rel", "cta"),
        ("barrier.cluster.arrive.relaxed", "relaxed", "cluster"),
        ("barrier.cluster.wait", "acquire", "cluster"),
        ("membar.gl", "sc", "gpu"),
        ("fence.cluster", "acq_rel", "cluster"),
        ("add.u32 %r1, %r2, %r3", "", None),
    ],
)
def test_ordering(line: str, semantics: str, scope: str | None) -> None:
    instruction = _instruction(line)
    assert (isa.semantics(instruction), isa.scope(instruction)) == (semantics, scope)


@pytest.mark.parametrize(
    ("line", "after", "direction", "covered", "scope"),
    [
        ("fence.proxy.async", isa.Proxy.ASYNC, "both", {"global", "shared::cta", "shared::cluster"}, None),
        ("fence.proxy.async.global", isa.Proxy.ASYNC, "both", {"global"}, None),
        ("fence.proxy.async.shared::cta", isa.Proxy.ASYNC, "both", {"shared::cta"}, None),
        ("fence.proxy.async.shared::cluster", isa.Proxy.ASYNC, "both", {"shared::cta", "shared::cluster"}, None),
        (
            "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster",
            isa.Proxy.ASYNC,
            "acquire",
            {"shared::cta", "shared::cluster"},
            "cluster",
        ),
        ("fence.proxy.tensormap::generic.release.gpu", isa.Proxy.TENSORMAP, "release", {"global"}, "gpu"),
        ("membar.proxy.alias", isa.Proxy.ALIAS, "both", {"global", "shared::cta"}, None),
    ],
)
def test_what_a_proxy_fence_covers(
    line: str, after: isa.Proxy, direction: str, covered: set[str], scope: str | None
) -> None:
    coverage = isa.covers(_instruction(line))
    assert coverage is not None
    assert (coverage.before, coverage.after, coverage.direction) == (isa.Proxy.GENERIC, after, direction)
    assert coverage.spaces & {"global", "shared::cta", "shared::cluster"} >= covered
    assert coverage.scope == scope


@pytest.mark.parametrize(
    "line", ["fence.acq_rel.gpu", "fence.mbarrier_init.release.cluster", "membar.sys", "bar.sync 0"]
)
def test_other_fences_join_no_proxies(line: str) -> None:
    assert isa.covers(_instruction(line)) is None


@pytest.mark.parametrize(
    ("name", "bits"),
    [("b1024", 1024), ("b128", 128), ("f16x2", 32), ("bf16", 16), ("u8x4", 32), ("e4m3x2", 16), ("pred", 1), ("s4", 4)],
)
def test_type_width(name: str, bits: int) -> None:
    assert isa.type_width(name) == bits


def test_what_is_no_type_has_no_width() -> None:
    with pytest.raises(ValueError, match="not a PTX type: rn"):
        isa.type_width("rn")


_registers = st.builds(Register, st.sampled_from([f"%r{n}" for n in range(12)]), st.sampled_from(["b32", "pred"]))
_simple: st.SearchStrategy[Operand] = st.one_of(
    _registers, st.just(Immediate(1, "1")), st.just(Symbol("smem")), st.just(Sink()), st.builds(Not, _registers)
)
_operands: st.SearchStrategy[Operand] = st.one_of(
    _simple,
    st.builds(Vector, st.lists(_simple, max_size=3).map(tuple)),
    st.builds(Address, _registers, st.just(4), st.lists(_simple, max_size=2).map(tuple)),
    st.builds(Pair, _simple, _simple),
    st.builds(Element, _registers, st.just("b0")),
)


def _named(operand: Operand) -> set[Register]:
    match operand:
        case Register():
            return {operand}
        case Not(inner) | Element(inner, _):
            return _named(inner)
        case Pair(first, second):
            return _named(first) | _named(second)
        case Vector(elements):
            return set().union(*map(_named, elements))
        case Address(base, _, rest):
            return set().union(*map(_named, (base, *rest)))
        case _:
            return set()


@given(
    row=st.sampled_from(isa.ROWS),
    more=st.lists(st.sampled_from(["shared::cta", "global", "L2::cache_hint", "parity", "b32", "cluster"]), max_size=3),
    operands=st.lists(_operands, max_size=8),
    guard=st.none() | st.builds(Guard, _registers, st.booleans()),
)
def test_every_operand_has_one_role_and_every_register_is_read_or_written(
    row: isa.Row, more: list[str], operands: list[Operand], guard: Guard | None
) -> None:
    opcode, *leading = row.name.split(".")
    required = [item.partition("|")[0] for item in row.requires]
    instruction = Instruction(opcode, (*leading, *required, *more), tuple(operands), guard, Span(1))
    assert list(isa.roles(instruction).values()) == operands
    named = set().union(*map(_named, operands), {guard.register} if guard else set())
    assert {*isa.reads(instruction), *isa.writes(instruction)} == named
    for access in isa.accesses(instruction):
        assert isa.space(instruction, access)
        assert isa.access_bytes(instruction, access) != 0
