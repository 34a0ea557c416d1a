"""Comments that silence findings: `// ptxlint: ignore[rule, ...] reason`, in the PTX or in its source; `#` in Python.

| comment | silences |
|---|---|
| `ignore[...]` after code | that line |
| `ignore[...]` on its own line | the next line of code |
| `ignore-begin[...]` to `ignore-end` | the lines between |
| `ignore-kernel[...]` in or directly above a kernel | the kernel |
| `ignore-file[...]` | the file |

A comment in inline assembly reaches the PTX; any other is read from the source files that the `.loc`s name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from ptxlint.classes import dataclass
from ptxlint.excerpt import source_file, source_lines
from ptxlint.parse.inline_asm import uncounted
from ptxlint.registry import UnknownSelectorError, expanded
from ptxlint.result import Diagnosis, FileReport, Place, Report, SourceComment, Verdict
from ptxlint.source import SourceLocation

MARK = "ptxlint:"

_AFTER_MARK = r"\s*ptxlint:\s*(?P<verb>[\w-]*)\s*(?:\[(?P<rules>[^\]]*)\])?(?P<reason>[^*]*)"
_COMMENT = re.compile(rf"(?://|/\*){_AFTER_MARK}")
_PYTHON_COMMENT = re.compile(rf"#{_AFTER_MARK}")
_FILE = re.compile(r'^[ \t]*\.file[ \t]+(\d+)[ \t]+"([^"]*)"', re.MULTILINE)
_ENTRY = re.compile(r"\.entry\s+([\w$]+)")
_NOT_PTX_CODE = re.compile(r"\s*(?:$|//|/\*|\.|[{}]\s*$|[\w$]+:\s*$)")
_BLANK = re.compile(r"\s*(?:$|//|/\*)")
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"|//.*')
_NOT_SOURCE_CODE = re.compile(r"\s*(?:$|//|/\*|\*)")
_NOT_PYTHON_CODE = re.compile(r"\s*(?:$|#)")


@dataclass(frozen=True, slots=True)
class Suppression:
    """A comment: the rules it names, and the lines it covers, both ends included, or the `kernel`."""

    line: int
    selectors: tuple[str, ...]
    first: int
    last: int
    kernel: str = ""

    @property
    def remark(self) -> str:
        """What to say when it silences nothing."""
        return f"unused suppression of {', '.join(self.selectors)}"

    def covers(self, rule: str, line: int, kernel: str) -> bool:
        """Whether a finding of that rule on that line is silenced."""
        is_there = self.kernel == kernel if self.kernel else self.first <= line <= self.last
        return is_there and rule in _rules(self.selectors)


@dataclass(frozen=True, slots=True)
class Comments:
    """The suppressions of one text, and the comments that are not understood."""

    suppressions: tuple[Suppression, ...] = ()
    mistakes: tuple[Place, ...] = ()


def suppressed(report: FileReport, text: str, ran: Callable[[], frozenset[str]]) -> FileReport:
    """The report without the findings that comments silence; `ran` gives the names of the rules that ran.

    Comments of the PTX that silence nothing, and those that are not understood, become remarks; those of the source
    may be of use to another module, so that `settled` decides about them.
    """
    comments = ptx_comments(text) if MARK in text else Comments()
    silencing = {finding: tuple(_silencing(finding, report.path, comments)) for finding in report.findings}
    used = {use for uses in silencing.values() for use in uses}
    kept = [finding for finding in report.findings if not silencing[finding]]
    unused = [
        Place(comment.line, comment.remark)
        for comment in comments.suppressions
        if ("", comment) not in used and _rules(comment.selectors) <= ran()
    ]
    return replace(
        without(report, kept),
        remarks=(*report.remarks, *comments.mistakes, *unused),
        suppressed=report.suppressed + len(report.findings) - len(kept),
        comments=tuple(_met_in_sources(text, report.path, used, ran)),
    )


def settled(files: Iterable[FileReport]) -> Report:
    """The run over those files; comments of the source that no file needs are remarks of the first that has them."""
    found = tuple(files)
    said = {(comment.location, comment.remark) for file in found for comment in file.comments if comment.is_used}
    ended = []
    for file in found:
        void = dict.fromkeys((comment.location, comment.remark) for comment in file.comments)
        remarks = (Place(0, remark, source=location) for location, remark in void if (location, remark) not in said)
        ended.append(replace(file, remarks=(*file.remarks, *remarks)) if void else file)
        said.update(void)
    return Report(tuple(ended))


def without(report: FileReport, kept: Sequence[Diagnosis]) -> FileReport:
    """The report with only those findings; a kernel that has none left ends as clean, or as not analysed."""
    found = {finding.kernel for finding in kept}
    kernels = tuple(
        kernel
        if kernel.verdict is not Verdict.FINDINGS or kernel.name in found
        else replace(kernel, verdict=Verdict.NOT_ANALYSED if kernel.reason else Verdict.CLEAN)
        for kernel in report.kernels
    )
    return replace(report, kernels=kernels, findings=tuple(kept))


def ptx_comments(text: str) -> Comments:
    """The comments of a PTX file."""
    lines = text.split("\n")
    return _Text(lines, _COMMENT, _NOT_PTX_CODE, _ptx_kernel).comments()


@lru_cache(maxsize=256)
def source_comments(path: str) -> Comments:
    """The comments of a source file."""
    lines = source_lines(path)
    if not any(MARK in line for line in lines):
        return Comments()
    if path.endswith(".py"):
        return _Text(lines, _PYTHON_COMMENT, _NOT_PYTHON_CODE, _python_kernel).comments()
    return _Text(lines, _COMMENT, _NOT_SOURCE_CODE, _source_kernel).comments()


def _silencing(finding: Diagnosis, ptx: str, comments: Comments) -> Iterator[tuple[str, Suppression]]:
    """The comments that silence the finding, each with the path of its source file, empty for the PTX itself."""
    for comment in comments.suppressions:
        if comment.covers(finding.rule, finding.line, finding.kernel):
            yield "", comment
    for frame in finding.source.frames() if finding.source else ():
        if path := source_file(frame, ptx):
            for comment in source_comments(path).suppressions:
                if comment.covers(finding.rule, frame.line, ""):
                    yield path, comment


def _met_in_sources(
    text: str, ptx: str, used: set[tuple[str, Suppression]], ran: Callable[[], frozenset[str]]
) -> Iterator[SourceComment]:
    """The comments that stand beside source lines that the module was compiled from."""
    text = uncounted(text)
    for number, name in _FILE.findall(text):
        path = source_file(SourceLocation(name, 0, 0), ptx)
        if path is None or source_comments(path) == Comments():
            continue
        lines = {int(line) for line in re.findall(rf"(?:\.loc|inlined_at)[ \t]+{number}[ \t]+(\d+)", text)}
        for comment in source_comments(path).suppressions:
            if _rules(comment.selectors) <= ran() and any(comment.first <= line <= comment.last for line in lines):
                location = SourceLocation(path, comment.line, 1)
                yield SourceComment(location, comment.remark, (path, comment) in used)
        for mistake in source_comments(path).mistakes:
            yield SourceComment(SourceLocation(path, mistake.line, 1), mistake.message, is_used=False)


@dataclass(frozen=True, slots=True)
class _Extent:
    """First and last line, and the kernel's name when the lines alone do not say it."""

    first: int
    last: int
    kernel: str = ""


class _MistakeError(Exception):
    """A comment that is not understood, and why."""


@dataclass(frozen=True, slots=True)
class _Text:
    """The lines of a text, what in its language is a comment for us and what is not code, and where kernels are."""

    lines: Sequence[str]
    comment: re.Pattern[str]
    not_code: re.Pattern[str]
    kernel_at: Callable[[Sequence[str], int], _Extent | None]

    def comments(self) -> Comments:
        """All comments of the text."""
        found: list[Suppression] = []
        begun: list[Suppression] = []
        mistakes: list[Place] = []
        for number, match in self._matches():
            try:
                if match["verb"] == "ignore-end":
                    found.append(_ended(begun, number))
                    continue
                suppression = self._suppression(number, match)
                (begun if match["verb"] == "ignore-begin" else found).append(suppression)
            except _MistakeError as error:
                mistakes.append(Place(number, f"suppression not understood: {error}"))
        mistakes += (Place(left.line, "suppression not understood: it has no ignore-end") for left in begun)
        return Comments(tuple(found), tuple(mistakes))

    def _matches(self) -> Iterator[tuple[int, re.Match[str]]]:
        for number, line in enumerate(self.lines, 1):
            if MARK in line and (match := self.comment.search(line)):
                yield number, match

    def _suppression(self, number: int, match: re.Match[str]) -> Suppression:
        extent = self._extent(number, match)
        selectors = tuple(part.strip() for part in (match["rules"] or "").split(",") if part.strip())
        if not selectors:
            raise _MistakeError("name the rules in brackets, such as ignore[PTX401]")
        try:
            _rules(selectors)
        except UnknownSelectorError as error:
            raise _MistakeError(str(error)) from error
        return Suppression(number, selectors, extent.first, extent.last, extent.kernel)

    def _extent(self, number: int, match: re.Match[str]) -> _Extent:
        match match["verb"]:
            case "ignore":
                is_alone = not self.lines[number - 1][: match.start()].strip()
                return _Extent(number, self._next_code(number) if is_alone else number)
            case "ignore-begin":
                return _Extent(number, number)
            case "ignore-file":
                return _Extent(1, len(self.lines))
            case "ignore-kernel":
                kernel = self.kernel_at(self.lines, number)
                if kernel is None:
                    raise _MistakeError("it belongs to no kernel")
                return kernel
        raise _MistakeError(f"{match['verb']!r} is not ignore, ignore-begin, ignore-end, ignore-kernel or ignore-file")

    def _next_code(self, number: int) -> int:
        """The next line of code after a line, from 1; the line itself when there is none."""
        later = range(number, len(self.lines))
        return next((line + 1 for line in later if not self.not_code.match(self.lines[line])), number)


def _ended(begun: list[Suppression], number: int) -> Suppression:
    if not begun:
        raise _MistakeError("ignore-end without ignore-begin")
    return replace(begun.pop(), last=number)


def _ptx_kernel(lines: Sequence[str], number: int) -> _Extent | None:
    """The kernel whose header is the next code after the line, else the last whose header stands before it."""
    above = range(number, 0, -1)
    below = (line for line in range(number, len(lines)) if not _BLANK.match(lines[line]))
    following = _ENTRY.search(lines[next(below, number - 1)])
    entry = following or next((match for line in above if (match := _ENTRY.search(lines[line - 1]))), None)
    return _Extent(number, number, entry[1]) if entry else None


def _source_kernel(lines: Sequence[str], number: int) -> _Extent | None:
    """The function that the line is in, or directly above; functions are told by `__global__` and their braces."""
    start = next((line for line in range(number, len(lines)) if "__global__" in lines[line]), None)
    if start is not None and not any(re.search(r"[;}]", line) for line in lines[number:start]):
        return _Extent(number, _closing(lines, start) + 1)
    for begin in range(number - 1, -1, -1):
        if "__global__" in lines[begin]:
            end = _closing(lines, begin) + 1
            return _Extent(begin + 1, end) if end >= number else None
    return None


def _python_kernel(lines: Sequence[str], number: int) -> _Extent | None:
    """The function that the line is directly above, or the innermost that it is in; decorators belong to it."""
    import ast

    try:
        tree = ast.parse("\n".join(lines))
    except (SyntaxError, ValueError):
        return None
    functions = [
        (min((node.lineno, *(decorator.lineno for decorator in node.decorator_list))), node.end_lineno or node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
    ]
    below = next((line + 1 for line in range(number, len(lines)) if not _NOT_PYTHON_CODE.match(lines[line])), 0)
    around = [(first, last) for first, last in functions if first <= number <= last or first == below]
    return _Extent(*max(around)) if around else None


def _closing(lines: Sequence[str], start: int) -> int:
    """The index of the line that closes the first brace opened from `start` on."""
    depth = 0
    for index in range(start, len(lines)):
        code = _TEXT.sub("", lines[index])
        depth += code.count("{") - code.count("}")
        if depth <= 0 and "}" in code:
            return index
    return len(lines) - 1


@lru_cache(maxsize=256)
def _rules(selectors: tuple[str, ...]) -> frozenset[str]:
    return expanded(selectors)
