"""Shadow memory: bytes that all accesses have treated alike share what is remembered of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ptxlint.execution.conflict import Interval
from ptxlint.execution.shadow import PAGE_SHIFT, Shadow

SIZE = 40

Reach = tuple[Interval, ...]


def _reach(edges: set[int]) -> Reach:
    ordered = sorted(edges)
    return tuple(zip(ordered[::2], ordered[1::2], strict=False))


reaches = st.sets(st.integers(0, SIZE), min_size=2, max_size=8).map(_reach)


def _bytes(reach: Reach) -> set[int]:
    return {byte for start, stop in reach for byte in range(start, stop)}


def _touch(shadow: Shadow[int], access: int, reach: Reach, *, is_write: bool) -> None:
    place = shadow.place(reach)
    shadow.add(access, place, shadow.before(place) if is_write else frozenset())


@given(st.lists(st.tuples(reaches, st.booleans()), max_size=12))
def test_each_byte_remembers_who_touched_it_last(made: list[tuple[Reach, bool]]) -> None:
    shadow: Shadow[int] = Shadow()
    for access, (reach, is_write) in enumerate(made):
        _touch(shadow, access, reach, is_write=is_write)
    for byte in range(SIZE):
        touching = [access for access, (reach, _) in enumerate(made) if byte in _bytes(reach)]
        held = [touch.access for touch in shadow.between(byte, byte + 1)]
        assert held == sorted(held)
        assert set(held) <= set(touching)
        assert held[-1:] == touching[-1:]


@given(st.lists(reaches, max_size=12), reaches)
def test_bytes_with_a_common_past_share_a_cell(made: list[Reach], reach: Reach) -> None:
    shadow: Shadow[int] = Shadow()
    for access, earlier in enumerate(made):
        _touch(shadow, access, earlier, is_write=False)
    cells = shadow.place(reach).cells
    pasts = {frozenset(a for a, earlier in enumerate(made) if byte in _bytes(earlier)) for byte in _bytes(reach)}
    assert len(cells) == len(pasts)
    assert {frozenset(touch.access for touch in cell.held) for cell in cells} == pasts


def test_a_known_place_follows_the_cells_that_are_divided() -> None:
    shadow: Shadow[int] = Shadow()
    _touch(shadow, 0, ((0, 32),), is_write=True)
    _touch(shadow, 1, ((8, 16),), is_write=True)
    whole = shadow.place(((0, 32),))
    assert len(whole.cells) == 2
    assert {touch.access for touch in shadow.before(whole)} == {0, 1}
    _touch(shadow, 2, ((0, 32),), is_write=True)
    assert [touch.access for touch in shadow.between(0, 32)] == [2]


def test_an_access_takes_the_place_only_of_what_it_covers() -> None:
    shadow: Shadow[int] = Shadow()
    _touch(shadow, 0, ((0, 32),), is_write=True)
    _touch(shadow, 1, ((8, 16),), is_write=True)
    assert [touch.access for touch in shadow.between(8, 16)] == [0, 1]


def test_an_access_takes_the_place_of_another_by_pages() -> None:
    shadow: Shadow[int] = Shadow()
    page = 1 << PAGE_SHIFT
    _touch(shadow, 0, ((0, 4 * page),), is_write=True)
    _touch(shadow, 1, ((page, 2 * page),), is_write=True)
    assert [touch.access for touch in shadow.between(page, 2 * page)] == [1]


def test_empty_intervals_touch_nothing() -> None:
    shadow: Shadow[int] = Shadow()
    assert not shadow.place(((8, 8),)).intervals
    assert not shadow.between(0, SIZE)
