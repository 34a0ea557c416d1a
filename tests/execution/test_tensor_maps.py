"""Which instructions of a kernel touch tensor maps in global memory."""

from __future__ import annotations

from ptxlint.execution import tensor_maps

from .running import kernel

BEGIN = """
.shared .align 128 .b8 tile[256];
ld.param.u64 %rd1, [maps]; ld.param.u64 %rd2, [result]; mov.u32 %r7, 0;
"""
USE = "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd1, {%r7}], [tile];\n"
ACQUIRE = "fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;\n"


def touched(snippet: str) -> list[str]:
    """The instructions by name, in order."""
    made = kernel(BEGIN + snippet)
    found = tensor_maps.registers(made.cfg, made.slice.definitions)
    return [made.cfg.body[point].opcode for point in sorted(found)]


def test_uses_and_fences() -> None:
    assert touched(ACQUIRE + USE) == ["fence", "cp"]


def test_none_where_nothing_is_for_tensor_maps() -> None:
    assert touched("st.global.u64 [%rd1], %rd2;\n" + USE) == []


def test_stores_to_where_maps_come_from() -> None:
    assert touched("st.global.u64 [%rd1+8], %rd2;\n" + ACQUIRE + USE) == ["st", "fence", "cp"]
    assert touched("add.u64 %rd3, %rd1, 128; st.u64 [%rd3], %rd2;\n" + ACQUIRE + USE) == ["st", "fence", "cp"]
    again = "ld.param.u64 %rd3, [maps]; st.global.u64 [%rd3], %rd2;\n"
    assert touched(again + ACQUIRE + USE) == ["st", "fence", "cp"]


def test_stores_elsewhere_are_left_out() -> None:
    assert touched("st.global.u64 [%rd2], %rd1;\n" + ACQUIRE + USE) == ["fence", "cp"]
    assert touched("st.shared.u64 [tile], %rd1;\n" + ACQUIRE + USE) == ["fence", "cp"]


def test_a_prefetch_is_no_use() -> None:
    assert touched("prefetch.tensormap [%rd1];\n" + ACQUIRE) == ["fence"]


def test_a_change_in_shared_memory_names_no_place() -> None:
    change = "mov.u32 %r8, tile; tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r8], %rd2;\n"
    made = kernel(BEGIN + change + ACQUIRE)
    found = tensor_maps.registers(made.cfg, made.slice.definitions)
    assert [len(needed) for _, needed in sorted(found.items())] == [0, 1]


def test_a_copy_of_a_map_names_where_it_goes() -> None:
    copy = (
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd1], [tile], 128;\n"
    )
    made = kernel(BEGIN + copy)
    ((_, needed),) = tensor_maps.registers(made.cfg, made.slice.definitions).items()
    assert [register.name for register in needed] == ["%rd1"]
