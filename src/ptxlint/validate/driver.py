"""The CUDA driver through cuda-python: loading PTX, memory, tensor maps, launches and waiting for them."""

import ctypes
import importlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ptxlint.validate.fixture import Fixture, Launch, Parameter
from ptxlint.validate.problem import Array, Problem, is_scalar

STATIC_SHARED_LIMIT = 48 * 1024


class DeviceError(Exception):
    """A call of the driver failed; the message is the name that CUDA gives the error."""


class HangError(Exception):
    """A launch did not end within its time."""


@cache
def cuda() -> Any:
    """The driver's bindings, imported when they are needed: the rest of the package works without them."""
    return importlib.import_module("cuda.bindings.driver")


def done(result: Sequence[Any]) -> Any:
    """The values that a driver call returned. Raises: DeviceError."""
    status, *values = result
    if int(status) != 0:
        _, name = cuda().cuGetErrorName(status)
        raise DeviceError(name.decode())
    return values[0] if len(values) == 1 else tuple(values)


@dataclass(frozen=True, slots=True)
class Device:
    """The first GPU, with its context current."""

    name: str
    capability: tuple[int, int]
    driver: int
    multiprocessors: int


def open_device() -> Device:
    """Makes a context on the first GPU. Raises: DeviceError where there is none."""
    api = cuda()
    done(api.cuInit(0))
    handle = done(api.cuDeviceGet(0))
    done(api.cuCtxSetCurrent(done(api.cuDevicePrimaryCtxRetain(handle))))
    attribute = api.CUdevice_attribute
    major, minor, multiprocessors = (
        done(api.cuDeviceGetAttribute(which, handle))
        for which in (
            attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
            attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
            attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
        )
    )
    name = done(api.cuDeviceGetName(128, handle)).split(b"\0")[0].decode()
    return Device(name, (major, minor), done(api.cuDriverGetVersion()), multiprocessors)


def allocate(array: Array) -> int:
    """The address of new device memory of the array's size."""
    return int(done(cuda().cuMemAlloc(array.nbytes)))


def upload(address: int, array: Array) -> None:
    """Copies the array to the device."""
    done(cuda().cuMemcpyHtoD(address, array.ctypes.data, array.nbytes))


def download(address: int, like: Array) -> Array:
    """What the device holds at the address, in the form of the array."""
    array = np.empty_like(like)
    done(cuda().cuMemcpyDtoH(array.ctypes.data, address, array.nbytes))
    return array


def tensor_map(parameter: Parameter, shape: tuple[int, ...], address: int, itemsize: int) -> bytes:
    """The 128 bytes of a tensor map over a dense buffer of 32-bit words."""
    api = cuda()
    assert parameter.tensormap is not None
    box = parameter.tensormap.box
    strides = [itemsize * int(np.prod(shape[: dimension + 1])) for dimension in range(len(shape) - 1)]
    encoded = done(
        api.cuTensorMapEncodeTiled(
            api.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_UINT32,
            len(shape),
            address,
            [api.cuuint64_t(extent) for extent in shape],
            [api.cuuint64_t(stride) for stride in strides],
            [api.cuuint32_t(extent) for extent in box],
            [api.cuuint32_t(1) for _ in box],
            api.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            api.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_NONE,
            api.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_NONE,
            api.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
    )
    return ctypes.string_at(int(encoded.getPtr()), 128)


@dataclass(frozen=True, slots=True)
class Arguments:
    """The kernel's parameters as the driver wants them: an array of pointers, and what they point to."""

    pointers: Array
    storage: tuple[Array, ...]


def arguments_of(fixture: Fixture, problem: Problem, addresses: dict[str, int]) -> Arguments:
    """Scalars, addresses and tensor maps in the order of the parameters."""
    storage = tuple(argument(parameter, problem, addresses) for parameter in fixture.parameters)
    return Arguments(np.array([array.ctypes.data for array in storage], np.uint64), storage)


def argument(parameter: Parameter, problem: Problem, addresses: dict[str, int]) -> Array:
    """The bytes of one parameter."""
    if is_scalar(parameter):
        return np.array([parameter.value], np.uint32)
    name = parameter.of or parameter.name
    if parameter.tensormap:
        itemsize = problem.buffers[name].initial.itemsize
        encoded = tensor_map(parameter, problem.shape(parameter), addresses[name], itemsize)
        return np.frombuffer(encoded, np.uint8).copy()
    return np.array([addresses[name]], np.uint64)


def load(ptx: str, names: Sequence[str], dynamic_smem: int) -> tuple[Any, ...]:
    """The functions of a module, compiled by the driver."""
    api = cuda()
    module = done(api.cuModuleLoadData(ptx.encode() + b"\0"))
    functions = tuple(done(api.cuModuleGetFunction(module, name.encode())) for name in names)
    attribute = api.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    if dynamic_smem > STATIC_SHARED_LIMIT:
        for function in functions:
            done(api.cuFuncSetAttribute(function, attribute, dynamic_smem))
    return functions


def start(functions: Sequence[Any], launch: Launch, arguments: Arguments) -> None:
    """Launches the functions one after the other on the default stream."""
    for number, function in enumerate(functions):
        config = configuration(launch, is_dependent=launch.dependent and number > 0)
        done(cuda().cuLaunchKernelEx(config, function, arguments.pointers.ctypes.data, 0))


def configuration(launch: Launch, is_dependent: bool) -> Any:
    """The launch as the driver's structure."""
    api = cuda()
    config = api.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = launch.grid
    config.blockDimX, config.blockDimY, config.blockDimZ = launch.block
    config.sharedMemBytes = launch.dynamic_smem
    attributes = []
    if launch.cluster != (1, 1, 1):
        cluster = api.CUlaunchAttribute()
        cluster.id = api.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        dimensions = cluster.value.clusterDim
        dimensions.x, dimensions.y, dimensions.z = launch.cluster
        attributes.append(cluster)
    if is_dependent:
        dependent = api.CUlaunchAttribute()
        dependent.id = api.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
        dependent.value.programmaticStreamSerializationAllowed = 1
        attributes.append(dependent)
    config.attrs = attributes
    config.numAttrs = len(attributes)
    return config


def wait(seconds: float) -> None:
    """Waits for the default stream. Raises: HangError after the given time, DeviceError when a kernel failed."""
    api = cuda()
    deadline = time.monotonic() + seconds
    while True:
        status = api.cuStreamQuery(0)[0]
        if status != api.CUresult.CUDA_ERROR_NOT_READY:
            done((status,))
            return
        if time.monotonic() > deadline:
            raise HangError
        time.sleep(0.0001)
