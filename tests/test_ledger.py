"""The ledger of mbarriers, and the views of `ptxlint show` that rest on the execution."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner

from ptxlint.cli import program
from ptxlint.execution.engine import Execution, execute
from ptxlint.execution.ledger import Account, ledger, rings
from ptxlint.execution.story import Names
from ptxlint.launch import Launch, stated
from ptxlint.parse import parse

KERNELS = Path(__file__).parent.parent / "fixtures" / "kernels"


@cache
def _execution(variant: str) -> Execution:
    module = parse((KERNELS / f"{variant}.ptx").read_text())
    function = module.functions[0]
    return execute(module, function, stated(function, Launch()))


def _accounts(variant: str) -> dict[str, Account]:
    execution = _execution(variant)
    run = execution.defects[0].run if execution.defects else execution.runs[0]
    return {account.name: account for account in ledger(run.machine, Names.of(execution))}


def _lines(variant: str, point: int) -> list[int]:
    lines = []
    loc = _execution(variant).body[point].loc
    while loc is not None:
        lines.append(loc.line)
        loc = loc.inlined_at
    return lines


class TestLedger:
    def test_names_every_slot(self) -> None:
        slots = [f"{ring}[{slot}]" for ring in ("full", "empty") for slot in range(4)]
        assert list(_accounts("ring/right")) == slots

    def test_counts_and_who_arrives(self) -> None:
        full, empty = (_accounts("ring/right")[name] for name in ("full[0]", "empty[0]"))
        assert (full.count, empty.count) == (1, 128)
        assert [(share.who, share.amounts) for share in full.arrivals] == [("thread 128", (1,))]
        assert [(share.who, share.amounts) for share in empty.arrivals] == [("warps 0-3", (128,))]

    def test_bytes_balance(self) -> None:
        full = _accounts("ring/right")["full[1]"]
        assert [share.amounts for share in full.expected] == [(512,)]
        assert [share.amounts for share in full.copied] == [(512,)]

    def test_parities_of_waits_alternate(self) -> None:
        full, empty = (_accounts("ring/right")[name] for name in ("full[0]", "empty[0]"))
        assert [share.amounts[:3] for share in full.waits] == [(0, 1, 0)]
        assert [share.amounts[:3] for share in empty.waits] == [(1, 0, 1)]
        assert [share.who for share in full.waits] == ["warps 0-3"]

    def test_places(self) -> None:
        (wait,) = _accounts("ring/right")["full[0]"].waits
        assert 176 in _lines("ring/right", wait.point)

    def test_what_it_guards(self) -> None:
        assert _accounts("ring/right")["full[2]"].guards == ("tile+1024",)
        assert _accounts("ring/right")["empty[2]"].guards == ()

    def test_phases_completed(self) -> None:
        accounts = _accounts("ring/right")
        assert all(accounts[f"full[{slot}]"].phases >= 3 for slot in range(4))

    def test_a_wait_that_never_returns_is_stuck(self) -> None:
        full = _accounts("ring/init-count-2")["full[0]"]
        assert (full.phases, full.waits) == (0, ())
        assert {share.amounts for share in full.stuck} == {(0,)}

    def test_arrivals_of_hardware_belong_to_their_issuer(self) -> None:
        accounts = _accounts("tcgen05_gemm/right")
        (release,) = accounts["barriers[4]"].arrivals
        assert release.who == "thread 128"

    def test_bytes_of_a_tensor_box_are_unknown(self) -> None:
        copied = _accounts("tensor_ring/right")["full[0]"].copied
        assert copied
        assert all(share.amounts == (-1,) for share in copied)

    def test_both_ctas_have_their_own(self) -> None:
        accounts = _accounts("cluster_multicast/right")
        assert {"full[0] of CTA 0", "full[0] of CTA 1"} <= accounts.keys()
        (initializer,) = accounts["full[0] of CTA 1"].inits
        assert initializer.who == "thread 0 of CTA 1"

    def test_slots_of_a_ring_go_together(self) -> None:
        accounts = list(_accounts("ring/right").values())
        groups = [[account.name for account in group] for group in rings(accounts, _execution("ring/right").body)]
        assert groups == [[f"{ring}[{slot}]" for slot in range(4)] for ring in ("full", "empty")]


def _show(view: str, variant: str, *options: str) -> str:
    result = CliRunner().invoke(program, ["show", view, str(KERNELS / f"{variant}.ptx"), *options])
    assert result.exit_code == 0, result.output
    return result.output


class TestViews:
    def test_ledger(self) -> None:
        output = _show("ledger", "ring/right")
        (full,) = [line for line in output.splitlines() if "full[0-3]" in line]
        assert "1 by thread 128" in full
        assert "512 expected by thread 128" in full
        assert "warps 0-3: 0 1 0" in full
        assert "ring.cu:160" in full

    def test_ledger_of_each_slot(self) -> None:
        assert "full[3] " in _show("ledger", "ring/right", "--each")

    def test_trace(self) -> None:
        lines = _show("trace", "ring/no-toggle").splitlines()
        assert "schedule fifo" in lines[0]
        assert lines[1].split() == ["#", "agent", "event", "on", "parity", "amount", "phase", "pending", "tx", "at"]
        assert any("defect: waits for the same parity again" in line and "ring.cu:176" in line for line in lines)
        first_copy = next(line for line in lines if " copy " in line)
        assert first_copy.split()[1:] == [
            "thread",
            "128",
            "copy",
            "full[0]",
            "512",
            "0",
            "0",
            "512",
            *first_copy.split()[-4:],
        ]

    def test_trace_of_one_barrier(self) -> None:
        output = _show("trace", "ring/right", "--on", "full?0?")
        assert "full[0]" in output
        assert "full[1]" not in output
        assert "empty[0]" not in output

    def test_trace_by_agent(self) -> None:
        rows = _show("trace", "ring/right", "--by-agent", "--on", "full*").splitlines()[2:]
        agents = [row.split()[1:3] for row in rows if " hardware " not in row]
        changes = sum(1 for before, after in pairwise(agents) if before != after)
        assert changes == len({tuple(agent) for agent in agents}) - 1

    @pytest.mark.parametrize("schedule", ["highest thread first", "initializing"])
    def test_schedule(self, schedule: str) -> None:
        assert f"schedule {schedule}" in _show("trace", "ring/right", "--schedule", schedule)

    def test_unknown_schedule(self) -> None:
        result = CliRunner().invoke(
            program, ["show", "trace", str(KERNELS / "ring/right.ptx"), "--schedule", "alphabetical"]
        )
        assert result.exit_code == 2
        assert "lowest thread first" in result.output

    def test_values(self) -> None:
        lines = _show("values", "ring/right").splitlines()
        wait = next(i for i, line in enumerate(lines) if "ring.cu:176" in line)
        assert "full[0], full[1], full[2], full[3]" in lines[wait]
        assert lines[wait + 1].split()[0] == "parity"
        assert lines[wait + 1].rstrip().endswith("0, 1")

    def test_launch_options_reach_the_engine(self) -> None:
        assert "block 192x1x1" in _show("trace", "ring/right", "--block", "192", "--limit", "1")
