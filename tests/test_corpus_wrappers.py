"""The corpus project that calls every cuda::ptx wrapper: reading declarations, choosing targets, writing calls."""

import importlib
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

HEADER = """\
/*
// copy.scope [to], size, [bar]; // PTX ISA 80, SM_90a, SM_100f
// .scope = { .cta, .cluster }
template <dot_scope Scope>
__device__ void copy(...);
*/
#if __cccl_ptx_isa >= 800
template <::cuda::ptx::dot_scope _Scope>
_CCCL_DEVICE_API void copy(
  ::cuda::ptx::space_shared_t,
  ::cuda::ptx::scope_t<_Scope> __scope,
  void* __to,
  const ::cuda::std::uint32_t& __size,
  const ::cuda::std::int32_t (&__corner)[2],
  ::cuda::std::uint64_t* __bar)
{
  static_assert(__scope == scope_cta || __scope == scope_cluster, "");
  asm("" : : "l"(__as_ptr_gmem(__to)), "r"(__size), "r"(__as_ptr_smem(__bar)) : "memory");
}
#endif // __cccl_ptx_isa >= 800

/*
// later; // PTX ISA 94, SM_90
*/
#if __cccl_ptx_isa >= 940
template <typename = void>
_CCCL_DEVICE_API void later()
{
}
#endif // __cccl_ptx_isa >= 940

/*
// answer; // PTX ISA 20
*/
#if __cccl_ptx_isa >= 200
template <typename _B32, ::cuda::std::enable_if_t<sizeof(_B32) == 4, bool> = true>
_CCCL_DEVICE_API _B32 answer(_B32 (&__out)[2], bool __on = {})
{
}
#endif // __cccl_ptx_isa >= 200
"""


@pytest.fixture
def cccl(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The project's script as a module."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))
    yield importlib.import_module("bench.corpus.projects.cccl")
    for name in [name for name in sys.modules if name.startswith("bench.")]:
        del sys.modules[name]


def test_declarations_newer_than_the_compiler_are_left_out(cccl: ModuleType) -> None:
    assert [wrapper.name for wrapper in cccl.wrappers(HEADER)] == ["copy", "answer"]


def test_parameters_are_read(cccl: ModuleType) -> None:
    copy, _ = cccl.wrappers(HEADER)
    assert [(each.name, each.pointer, each.reference, each.count) for each in copy.parameters] == [
        ("", False, False, 0),
        ("__scope", False, False, 0),
        ("__to", True, False, 0),
        ("__size", False, True, 0),
        ("__corner", False, True, 2),
        ("__bar", True, False, 0),
    ]


def test_one_kernel_for_each_constant_in_the_assertion(cccl: ModuleType) -> None:
    copy, _ = cccl.wrappers(HEADER)
    texts = list(cccl.kernels(copy, itertools.count()))
    assert ["cuda::ptx::scope_cta," in text for text in texts] == [True, False]
    assert ["cuda::ptx::scope_cluster," in text for text in texts] == [False, True]


def test_pointers_go_to_the_space_that_the_body_casts_to(cccl: ModuleType) -> None:
    copy, _ = cccl.wrappers(HEADER)
    text = next(cccl.kernels(copy, itertools.count()))
    assert "reinterpret_cast<void*>(global + " in text
    assert "reinterpret_cast<::cuda::std::uint64_t*>(shared + " in text


def test_what_is_written_is_stored(cccl: ModuleType) -> None:
    _, answer = cccl.wrappers(HEADER)
    text = next(cccl.kernels(answer, itertools.count()))
    assert "unsigned value0[2];" in text
    assert "given(global, cuda::ptx::answer(value0, taken<bool>(global, 1)));" in text
    assert "value0[1]);" in text


@pytest.mark.parametrize(
    ("target", "arch", "expected"),
    [
        ("90", "sm_80", False),
        ("90", "sm_120a", True),
        ("90a", "sm_90a", True),
        ("90a", "sm_100a", False),
        ("100f", "sm_100a", True),
        ("100f", "sm_103a", True),
        ("103f", "sm_100a", False),
        ("100f", "sm_120a", False),
    ],
)
def test_targets_cover_architectures_as_the_isa_says(cccl: ModuleType, target: str, arch: str, expected: bool) -> None:
    assert cccl.covers(target, arch) is expected
