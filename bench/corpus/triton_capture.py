"""PTX of every Triton kernel that ordinary Python code launches, without a GPU.

Runs inside the virtual environment of a project. Launches compile and stop there; tensors are fake; what host code asks
of the device gets the answers of an H200 (or of a B200, for sm_100). Tensors belong to the CPU device, because autograd
knows no other in a CPU build of PyTorch.
"""

import importlib
import os
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

_PROCESSORS = {80: 108, 90: 132, 100: 148, 120: 188}
_SHARED = {80: 166912, 90: 232448, 100: 232448, 120: 101376}


class _Properties:
    def __init__(self, capability: int) -> None:
        self.name = {90: "NVIDIA H200", 100: "NVIDIA B200"}.get(capability, "NVIDIA GPU")
        self.major, self.minor = divmod(capability, 10)
        self.multi_processor_count = _PROCESSORS[capability]
        self.shared_memory_per_block_optin = _SHARED[capability]
        self.max_threads_per_multi_processor = 2048
        self.warp_size = 32
        self.L2_cache_size = 50 << 20
        self.total_memory = 140 << 30


class _Utilities:
    def __init__(self, properties: _Properties) -> None:
        self.properties = properties

    def get_device_properties(self, device: int) -> dict[str, int]:
        del device
        return {
            "max_shared_mem": self.properties.shared_memory_per_block_optin,
            "multiprocessor_count": self.properties.multi_processor_count,
            "max_num_regs": 65536,
            "warpSize": 32,
            "sm_clock_rate": 1980000,
            "mem_clock_rate": 2600000,
            "mem_bus_width": 6144,
        }


class _Driver:
    """Stands where Triton expects the CUDA driver."""

    def __init__(self, capability: int, properties: _Properties) -> None:
        target = importlib.import_module("triton.backends.compiler").GPUTarget
        self.target = target("cuda", capability, 32)
        self.utils = _Utilities(properties)

    def get_current_target(self) -> object:
        return self.target

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        del device

    def get_current_stream(self, device: int = 0) -> int:
        del device
        return 0

    def get_device_capability(self, device: int = 0) -> tuple[int, int]:
        del device
        return self.utils.properties.major, self.utils.properties.minor

    def get_active_torch_device(self) -> object:
        return importlib.import_module("torch").device("cuda", 0)

    def get_device_interface(self) -> object:
        return importlib.import_module("torch").cuda

    def map_python_to_cpp_type(self, kind: str) -> str:
        return kind


def capture(capability: int, work: Callable[[], object], configuration: int = 0) -> dict[str, str]:
    """PTX by kernel name of all that ``work`` launches, on fake tensors.

    ``work`` must import the code that defines the kernels: it runs after the stand-ins are in place. Of an autotuned
    kernel only the configuration with that number (modulo their count) is compiled.
    """
    os.environ["TRITON_CACHE_DIR"] = os.getcwd()
    properties = _Properties(capability)
    _stand_in_for_torch(properties)
    found: dict[str, str] = {}
    _stand_in_for_triton(capability, properties, configuration, found)
    fake_tensor = importlib.import_module("torch._subclasses.fake_tensor")
    with fake_tensor.FakeTensorMode():
        work()
    return found


def _stand_in_for_torch(properties: _Properties) -> None:
    cuda: Any = importlib.import_module("torch").cuda

    def always(value: object) -> Callable[..., object]:
        return lambda *_, **__: value

    cuda.is_available, cuda.device_count, cuda.current_device = always(True), always(1), always(0)
    cuda.get_device_name = always(properties.name)
    cuda.get_device_capability = always((properties.major, properties.minor))
    cuda.get_device_properties = always(properties)
    cuda.device, cuda.synchronize = always(nullcontext()), always(None)


def _stand_in_for_triton(capability: int, properties: _Properties, configuration: int, found: dict[str, str]) -> None:
    runtime: Any = importlib.import_module("triton.runtime")
    runtime.driver.set_active(_Driver(capability, properties))
    function, tuner = runtime.jit.JITFunction, runtime.autotuner.Autotuner
    launch = function.run

    def compile_only(self: Any, *given: Any, grid: object, warmup: bool, **named: Any) -> Any:
        del warmup
        if capability >= 90:
            named.setdefault("ptx_version", 90)
        kernel = launch(self, *given, grid=grid, warmup=True, **named)
        text = kernel.asm["ptx"]
        if text not in found.values():
            count = sum(1 for name in found if name.split(".")[0] == kernel.name)
            found[f"{kernel.name}.{count}" if count else kernel.name] = text
        return kernel

    function.run = compile_only
    backend: Any = importlib.import_module("triton.backends.nvidia.compiler").CUDABackend
    backend.make_cubin = lambda *_, **__: b""
    tuner.prune_configs = lambda self, _: [self.configs[configuration % len(self.configs)]]
