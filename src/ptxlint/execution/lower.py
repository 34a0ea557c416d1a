"""From the slice of a function to a program: blocks become segments, branches choose between them or part agents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ptxlint import isa
from ptxlint.cfg import Block, Cfg, EdgeKind
from ptxlint.execution import accesses, boxes, compute, events, lanes, tensor_maps
from ptxlint.execution.arithmetic import CARRY
from ptxlint.execution.layout import Layout
from ptxlint.execution.machine import BLOCKED
from ptxlint.execution.program import End, Program, Segment, Slots, Step
from ptxlint.execution.slice import Slice
from ptxlint.execution.strand import Region, Strand
from ptxlint.execution.values import spread
from ptxlint.ir import Instruction, Register, SpecialRegister
from ptxlint.isa import Flow


def lower(
    cfg: Cfg,
    slice_: Slice,
    layout: Layout,
    data: frozenset[int] = frozenset(),
    maps: frozenset[int] = frozenset(),
    closures: Closures | None = None,
) -> Program:
    """The program of a function's slice; `data` are the seeds that report their accesses, `maps` those to maps.

    `closures` has what another program of the same function was made of.
    """
    return _Lowering(cfg, slice_, layout, data, maps, closures or Closures(cfg)).run()


class Closures:
    """Closures of a function's instructions, which its programs share with the slots that they read and write.

    unknown: the instructions whose meaning is not known.
    """

    def __init__(self, cfg: Cfg) -> None:
        self.body = cfg.body
        self.slots = Slots()
        self.parameters = frozenset(parameter.name for parameter in cfg.function.parameters)
        self.unknown: set[int] = set()
        self._results: dict[int, Step] = {}
        self._events: dict[int, tuple[events.Event | None, events.Blocking | None]] = {}

    def result(self, point: int) -> Step:
        """What an instruction does to registers and memory."""
        if point not in self._results:
            self._results[point] = self._result(point)
        return self._results[point]

    def event(self, point: int) -> tuple[events.Event | None, events.Blocking | None]:
        """What a synchronization instruction does to barriers."""
        if point not in self._events:
            self._events[point] = events.build(self.body[point], point, self.slots)
        return self._events[point]

    def _result(self, point: int) -> Step:
        instruction = self.body[point]
        step = compute.build(instruction, self.slots, self.parameters)
        if step is None:
            self.unknown.add(point)
            step = compute.unknown(instruction, self.slots)
        if instruction.guard is None:
            return step
        guard = self.slots.register(instruction.guard.register.name)
        targets = [self.slots.register(register.name) for register in isa.writes(instruction)]
        is_by_part = instruction.opcode in ("st", "atom", "red") or instruction.opcode in lanes.MAKERS
        guarded = compute.guarded_effect if is_by_part else compute.guarded
        return guarded(step, guard, instruction.guard.negated, targets)


def _sequence(steps: Sequence[Step]) -> Step | None:
    """The closures one after the other."""
    if len(steps) < 2:
        return steps[0] if steps else None
    first, second = steps[0], _sequence(steps[1:])
    assert second is not None

    def run(strand: Strand) -> None:
        first(strand)
        second(strand)

    return run


class _Lowering:
    """Builds the segments; block numbers are resolved to segments through forward references."""

    def __init__(
        self,
        cfg: Cfg,
        slice_: Slice,
        layout: Layout,
        data: frozenset[int],
        maps: frozenset[int],
        closures: Closures,
    ) -> None:
        self.cfg = cfg
        self.slice = slice_
        self.closures = closures
        self.slots = closures.slots
        self.layout = layout
        self.events = frozenset(p for p in slice_.seeds if events.is_event(cfg.body[p]))
        self.accesses = frozenset(p for p in slice_.seeds if p in data)
        self.maps = maps
        self.footprints = accesses.Footprints()
        self.starts: dict[int, int] = {}
        self.segments: list[Segment] = []
        self.finish = 0

    def run(self) -> Program:
        reachable = [block for block in self.cfg.blocks if block.index in self.cfg.reachable]
        pieces = {block.index: self._pieces(block) for block in reachable}
        cursor = 0
        for block in reachable:
            self.starts[block.index] = cursor
            cursor += len(pieces[block.index])
        self.finish = cursor
        self.starts[self.cfg.exit] = cursor
        for block in reachable:
            for index, piece in enumerate(pieces[block.index]):
                is_last = index == len(pieces[block.index]) - 1
                self.segments.append(self._segment(block, piece, is_last))
        last = len(self.cfg.body) - 1
        self.segments.append(Segment((), lambda strand: strand.machine.end(strand, last), last, 1))
        named = {
            register.name
            for point in self.slice.points
            for register in (*isa.reads(self.cfg.body[point]), *isa.writes(self.cfg.body[point]))
        }
        varying = sorted(self.slots.register(name) for name in self.slice.varying & named)
        special = [i for slot, i in self.slots.index.items() if slot.kind == "special"]
        carry = [self.slots.register(CARRY.name)]
        program = Program(
            self.layout,
            self.segments,
            self.slots,
            tuple(dict.fromkeys([*varying, *special, *carry])),
            unknown=sorted(self.closures.unknown & self.slice.points),
            events=self.events,
            definitions=self.slice.definitions,
            maps=boxes.tensor_maps(self.cfg, self.slice.definitions),
            parameters=tuple(parameter.name for parameter in self.cfg.function.parameters),
        )
        program.seal()
        return program

    def _pieces(self, block: Block) -> list[list[int]]:
        """The points of a block, each synchronization point by itself: it may run again, what stands before it not.

        The last piece ends with the block's branch, if it has one.
        """
        pieces: list[list[int]] = [[]]
        for point in block.points:
            if point not in self.slice.points:
                continue
            if point in self.events:
                pieces.extend(([point], []) if pieces[-1] else ([],))
                if len(pieces[-2]) == 0:
                    pieces[-2].append(point)
            else:
                pieces[-1].append(point)
        return pieces

    def _segment(self, block: Block, points: Sequence[int], is_last: bool) -> Segment:
        here = len(self.segments)
        first = points[0] if points else max(block.start, block.stop - 1)
        if points and points[-1] in self.events:
            return Segment(self._uses_of_maps(first), self._event(first, here), first, 1)
        if not is_last:
            following = here + 1
            return Segment(self._steps(points), lambda strand: following, first, len(points))
        stop = block.stop - 1
        branch = points[-1] if points and points[-1] == stop and self._leaves(stop) else None
        plain = [point for point in points if point != branch]
        return Segment(self._steps(plain), self._end(block, branch), first, len(points) + 1)

    def _uses_of_maps(self, point: int) -> tuple[Step, ...]:
        return (tensor_maps.build(self.cfg.body[point], point, self.slots),) if point in self.maps else ()

    def _leaves(self, point: int) -> bool:
        row = isa.row(self.cfg.body[point])
        return row is not None and row.flow not in (Flow.NEXT, Flow.CALL)

    def _steps(self, points: Sequence[int]) -> tuple[Step, ...]:
        return tuple(step for point in points if (step := self._step(point)) is not None)

    def _step(self, point: int) -> Step | None:
        instruction = self.cfg.body[point]
        steps: list[Step] = []
        if point in self.accesses:
            steps.append(accesses.build(instruction, point, self.slots, self.footprints))
        steps.extend(self._uses_of_maps(point))
        if events.is_remote_access(instruction):
            steps.append(events.noting_remote(instruction, point, events.Reader(self.slots, instruction)))
        if point in self.slice.valued:
            steps.append(self.closures.result(point))
        return _sequence(steps)

    # Synchronization points

    def _event(self, point: int, here: int) -> End:
        instruction = self.cfg.body[point]
        event, blocking = self.closures.event(point)
        following = here + 1
        end = self._acting(instruction, event, blocking, here, following)
        if "done" in isa.roles(instruction):
            return end
        return lambda strand: following if point in strand.machine.repair.skipped else end(strand)

    def _acting(
        self,
        instruction: Instruction,
        event: events.Event | None,
        blocking: events.Blocking | None,
        here: int,
        following: int,
    ) -> End:
        if event is not None:
            return self._plain_event(instruction, event, following)
        if blocking is None:
            return lambda strand: following
        return self._blocking_event(instruction, blocking, here, following)

    def _plain_event(self, instruction: Instruction, event: events.Event, following: int) -> End:
        guard = instruction.guard
        if guard is None:

            def always(strand: Strand) -> int:
                event(strand, None)
                return following

            return always
        slot, negated = self.slots.register(guard.register.name), guard.negated

        def sometimes(strand: Strand) -> int:
            condition = strand.registers[slot]
            if condition.__class__ is tuple:
                positions = [i for i, value in enumerate(condition) if (value == 0) is negated]
                if positions:
                    event(strand, positions)
            elif (condition == 0) is negated:
                event(strand, None)
            return following

        return sometimes

    def _blocking_event(self, instruction: Instruction, run: events.Blocking, here: int, following: int) -> End:
        guard = instruction.guard
        slot = self.slots.register(guard.register.name) if guard else -1
        negated = guard.negated if guard else False
        distinguishing = self._distinguishing(instruction)
        region = self._region_of([instruction])

        def end(strand: Strand) -> int:
            registers = strand.registers
            if slot >= 0 and strand.pending is None:
                condition = registers[slot]
                if condition.__class__ is tuple:
                    acting = [i for i, value in enumerate(condition) if (value == 0) is negated]
                    others = [i for i, value in enumerate(condition) if (value == 0) is not negated]
                    return strand.machine.part(strand, [(acting, here), (others, following)], following, region)
                if (condition == 0) is not negated:
                    return following
            for operand in distinguishing:
                if registers[operand].__class__ is tuple:
                    groups: dict[int, list[int]] = {}
                    for position, value in enumerate(registers[operand]):
                        groups.setdefault(value, []).append(position)
                    parts = [(positions, here) for positions in groups.values()]
                    return strand.machine.part(strand, parts, following, region)
            return following if run(strand) else BLOCKED

        return end

    def _distinguishing(self, instruction: Instruction) -> list[int]:
        row = isa.row(instruction)
        reader = events.Reader(self.slots, instruction)
        wanted = events.DISTINGUISHING.get(row.name, ()) if row else ()
        return [reader.slot(role) for role in wanted if role in reader.roles]

    # Ends of blocks

    def _end(self, block: Block, branch: int | None) -> End:
        if branch is None:
            return self._skip(block)
        instruction = self.cfg.body[branch]
        row = isa.row(instruction)
        flow = row.flow if row else Flow.NEXT
        if flow is Flow.TABLE:
            return self._table(block, instruction)
        if flow in (Flow.EXIT, Flow.RETURN):
            return self._finish(block, branch, instruction)
        return self._branch(block, instruction)

    def _skip(self, block: Block) -> End:
        """The end of a block whose branch, if it has one, decides nothing: go on where its ways meet."""
        target = self.slice.skips.get(block.index)
        if target is None:
            targets = [edge.target for edge in block.successors]
            target = targets[0] if targets else self.cfg.exit
        following = self.starts.get(target, self.finish)
        return lambda strand: following

    def _finish(self, block: Block, point: int, instruction: Instruction) -> End:
        trap = isa.aborts(instruction)
        guard = instruction.guard
        if guard is None:
            return lambda strand: strand.machine.end(strand, point, trap=trap)
        slot, negated = self.slots.register(guard.register.name), guard.negated
        following = self.starts[block.successors[0].target] if block.successors else self.finish
        last = self.finish

        def end(strand: Strand) -> int:
            condition = strand.registers[slot]
            if condition.__class__ is tuple:
                leaving = [i for i, value in enumerate(condition) if (value == 0) is negated]
                staying = [i for i, value in enumerate(condition) if (value == 0) is not negated]
                return strand.machine.part(strand, [(leaving, last), (staying, following)], None, None)
            if (condition == 0) is negated:
                return strand.machine.end(strand, point, trap=trap)
            return following

        return end

    def _branch(self, block: Block, instruction: Instruction) -> End:
        taken = next((e for e in block.successors if e.kind is EdgeKind.BRANCH), None)
        fallen = next((e for e in block.successors if e.kind is EdgeKind.FALL_THROUGH), None)
        target = self.starts[taken.target] if taken else self.finish
        guard = instruction.guard
        if guard is None:
            return lambda strand: target
        following = self.starts[fallen.target] if fallen else self.finish
        slot, negated = self.slots.register(guard.register.name), guard.negated
        meet = self._meet(block)
        region = self._region(block) if meet is not None and self._is_varying(instruction) else None

        def end(strand: Strand) -> int:
            condition = strand.registers[slot]
            if condition.__class__ is not tuple:
                return target if (condition == 0) is negated else following
            jumping = [i for i, value in enumerate(condition) if (value == 0) is negated]
            falling = [i for i, value in enumerate(condition) if (value == 0) is not negated]
            return strand.machine.part(strand, [(jumping, target), (falling, following)], meet, region)

        return end

    def _table(self, block: Block, instruction: Instruction) -> End:
        roles = isa.roles(instruction)
        names = self.cfg.function.tables.get(str(roles["table"]), ())
        labels = self.cfg.function.labels
        starts = [self.starts[self.cfg.block_of[labels[name]]] for name in names]
        index = self.slots.operand(roles["index"], 32)
        last = self.finish
        meet = self._meet(block)
        region = self._region(block) if meet is not None and self._is_varying(instruction) else None

        def target(value: int) -> int:
            return starts[value] if value < len(starts) else last

        def end(strand: Strand) -> int:
            value = strand.registers[index]
            if value.__class__ is not tuple:
                return target(value)
            groups: dict[int, list[int]] = {}
            for position, item in enumerate(spread(value, len(strand.threads))):
                groups.setdefault(target(item), []).append(position)
            return strand.machine.part(strand, [(p, t) for t, p in groups.items()], meet, region)

        return end

    def _is_varying(self, instruction: Instruction) -> bool:
        return any(register.name in self.slice.varying for register in isa.reads(instruction))

    def _region(self, block: Block) -> Region:
        """What the blocks between a branch and the place where its ways meet read and write."""
        meet = self.slice.joins[block.index]
        inside: set[int] = set()
        stack = [edge.target for edge in block.successors]
        while stack:
            current = stack.pop()
            if current != meet and current not in inside:
                inside.add(current)
                stack.extend(edge.target for edge in self.cfg.blocks[current].successors)
        points = [point for index in inside for point in self.cfg.blocks[index].points if point in self.slice.points]
        return self._region_of([self.cfg.body[point] for point in points])

    def _region_of(self, instructions: Iterable[Instruction]) -> Region:
        reads: set[str] = set()
        writes: set[str] = set()
        special: set[int] = set()
        for instruction in instructions:
            reads.update(register.name for register in isa.reads(instruction))
            writes.update(register.name for register in isa.writes(instruction))
            special.update(self.slots.operand(o) for o in instruction.operands if isinstance(o, SpecialRegister))
        varying = (reads | writes) & self.slice.varying
        special |= {self.slots.register(CARRY.name)}
        slots = [self.slots.register(name) for name in sorted(varying)]
        return Region((*slots, *special), tuple(self.slots.register(name) for name in sorted(writes)))

    def _meet(self, block: Block) -> int | None:
        join = self.slice.joins.get(block.index)
        return None if join is None or join == self.cfg.exit else self.starts.get(join)


def registers_written(instruction: Instruction) -> Sequence[Register]:
    """The registers that an instruction writes."""
    return isa.writes(instruction)
