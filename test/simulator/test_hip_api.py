# SPDX-License-Identifier: MIT
"""The stand-in for the HIP runtime: what its functions return, and how its three versions differ."""

from __future__ import annotations

import ctypes as c
import struct
import subprocess
import threading
import zlib
from pathlib import Path

import hip as api
import pytest
import toolchain
from hip import ACTIVE, GLOBAL, INVALIDATED, NONE, PER_THREAD, RELAXED, THREAD_LOCAL, Hip

if toolchain.ZIGLANG is None:
    pytest.skip("needs PyPI's ziglang", allow_module_level=True)

PROGRAM = Path(__file__).parent / "programs" / "standin.c"
MAJORS = (5, 6, 7)


@pytest.fixture(scope="module", params=MAJORS)
def major(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(scope="module")
def hip(standin: Path, major: int) -> Hip:
    return Hip(standin / f"libamdhip64.so.{major}")


@pytest.fixture(autouse=True)
def clean(hip: Hip) -> None:
    """Every test begins on device 0, without an error."""
    hip.check("SetDevice", 0)
    hip.GetLastError()


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The kernels, for two architectures."""
    folder, compiler = tmp_path_factory.mktemp("standin"), toolchain.compilers()[0]
    return {
        arch: toolchain.build_device(compiler, PROGRAM, arch, ["-O2"], folder / arch)
        for arch in ("gfx90a", "gfx942")
    }


@pytest.fixture
def module(hip: Hip, images: dict[str, bytes]) -> int:
    return hip.make("ModuleLoadData", images["gfx90a"])


def fill(out: int, *, low: int = 5, high: int = 7 << 32, count: int = 64) -> bytes:
    """The arguments of the kernel `fill`."""
    return struct.pack("=QBxxxxxxxQI", out, low, high, count)


# ---- versions


def test_versions(hip: Hip, major: int) -> None:
    version = c.c_int()
    hip.check("RuntimeGetVersion", c.byref(version))
    assert version.value // 10_000_000 == major
    assert hip.RuntimeGetVersion(None) == "hipErrorInvalidValue"


def test_symbols_have_the_versions_that_programs_want(standin: Path, major: int) -> None:
    listed = subprocess.run(
        ["readelf", "-W", "--dyn-syms", standin / f"libamdhip64.so.{major}"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert "hipMalloc@@hip_4.2" in listed
    assert "hipMallocAsync@@hip_5.1" in listed
    assert ("hipGetDevicePropertiesR0600@@hip_6.0" in listed) == (major >= 6)
    assert ("hipStreamGetId@@hip_7.1" in listed) == (major >= 7)
    assert "tessera_" not in listed


def test_entry_points_by_name(hip: Hip, major: int) -> None:
    if major < 6:
        assert not hasattr(hip.library, "hipGetProcAddress")
        return
    address, result = c.c_void_p(), c.c_int()
    flags = 0
    hip.check("GetProcAddress", b"hipGetDeviceProperties", c.byref(address), 600, flags, c.byref(result))
    assert address.value == c.cast(hip.library.hipGetDevicePropertiesR0600, c.c_void_p).value
    hip.check("GetProcAddress", b"hipGetDeviceProperties", c.byref(address), 500, flags, None)
    assert address.value == c.cast(hip.library.hipGetDeviceProperties, c.c_void_p).value
    assert (
        hip.GetProcAddress(b"hipNoSuch", c.byref(address), 600, flags, c.byref(result))
        == "hipErrorInvalidValue"
    )
    assert (address.value, result.value) == (None, 1)


def test_what_is_missing_is_refused_by_name(hip: Hip, capfd: pytest.CaptureFixture[str]) -> None:
    assert hip.MallocArray(None, None, 1, 1, 0) == "hipErrorNotSupported"
    assert capfd.readouterr().err == "tessera_sim: hipMallocArray: not in this stand-in for libamdhip64\n"


def test_halves(hip: Hip) -> None:
    to_float, to_half = (getattr(hip.library, name) for name in ("__gnu_h2f_ieee", "__gnu_f2h_ieee"))
    to_float.restype, to_half.restype = c.c_float, c.c_uint16
    for value in (0.0, -1.5, 65504.0, 2.0**-24, float("inf")):
        (bits,) = struct.unpack("H", struct.pack("e", value))
        assert to_float(c.c_uint16(bits)) == value
        assert to_half(c.c_float(value)) == bits


# ---- errors


def test_every_error_has_its_name(hip: Hip) -> None:
    for name, number in api.ERRORS.items():
        assert hip.library.hipGetErrorName(number).decode() == name
        assert hip.library.hipGetErrorString(number)
    assert hip.library.hipGetErrorName(12345) == b"hipErrorUnknown"


def test_last_error(hip: Hip, major: int) -> None:
    assert hip.SetDevice(99) == "hipErrorInvalidDevice"
    assert hip.PeekAtLastError() == "hipErrorInvalidDevice"
    assert hip.GetLastError() == "hipErrorInvalidDevice"
    assert hip.GetLastError() == "hipSuccess"
    # Since version 7 a success does not hide an error before it.
    assert hip.SetDevice(99) == "hipErrorInvalidDevice"
    hip.check("SetDevice", 0)
    assert hip.GetLastError() == ("hipErrorInvalidDevice" if major >= 7 else "hipSuccess")


def test_last_error_is_of_the_thread(hip: Hip) -> None:
    seen = []
    assert hip.SetDevice(99) == "hipErrorInvalidDevice"
    thread = threading.Thread(target=lambda: seen.append(hip.GetLastError()))
    thread.start()
    thread.join()
    assert seen == ["hipSuccess"]
    assert hip.GetLastError() == "hipErrorInvalidDevice"


# ---- devices


def test_devices(hip: Hip, major: int) -> None:
    count = c.c_int()
    hip.check("GetDeviceCount", c.byref(count))
    assert count.value == 3
    for device, arch, units, shared in (
        (0, "gfx90a", 104, 64),
        (1, "gfx942", 304, 64),
        (2, "gfx950", 256, 160),
    ):
        old = c.create_string_buffer(b"\xff" * 800, 800)
        hip.check("GetDeviceProperties", old, device)
        assert old.raw[792:] == b"\xff" * 8
        assert old.raw[396:].split(b"\0")[0].decode() == f"{arch}:sramecc+:xnack-"
        assert struct.unpack_from("i", old.raw, 336) == (units,)
        if major >= 6:
            new = c.create_string_buffer(b"\xff" * 1480, 1480)
            hip.check("GetDevicePropertiesR0600", new, device)
            assert new.raw[1472:] == b"\xff" * 8
            assert new.raw[1160:].split(b"\0")[0].decode() == f"{arch}:sramecc+:xnack-"
            assert struct.unpack_from("i", new.raw, 388) == (units,)
            assert struct.unpack_from("Q", new.raw, 296) == (shared * 1024,)
        value = c.c_int()
        hip.check("DeviceGetAttribute", c.byref(value), 63, device)
        assert value.value == units
    assert hip.GetDeviceProperties(old, 3) == "hipErrorInvalidDevice"
    assert hip.DeviceGetAttribute(c.byref(value), 5000, 0) == "hipErrorInvalidValue"


def test_device_is_of_the_thread(hip: Hip) -> None:
    device = c.c_int(-1)
    hip.check("SetDevice", 2)
    thread = threading.Thread(target=lambda: hip.check("GetDevice", c.byref(device)))
    thread.start()
    thread.join()
    assert device.value == 0
    hip.check("GetDevice", c.byref(device))
    assert device.value == 2


def test_contexts(hip: Hip) -> None:
    device = c.c_int()
    context = hip.make("DevicePrimaryCtxRetain", 1)
    hip.check("CtxPushCurrent", context)
    hip.check("CtxGetDevice", c.byref(device))
    assert device.value == 1
    popped = c.c_uint64()
    hip.check("CtxPopCurrent", c.byref(popped))
    assert popped.value == context
    hip.check("GetDevice", c.byref(device))
    assert device.value == 0
    assert hip.CtxPopCurrent(None) == "hipErrorInvalidContext"
    assert hip.CtxSetCurrent(1234) == "hipErrorInvalidContext"
    hip.check("DevicePrimaryCtxRelease", 1)


# ---- memory


def test_wrong_memory_arguments(hip: Hip) -> None:
    out = c.c_uint64()
    assert hip.Malloc(None, 4) == "hipErrorInvalidValue"
    assert hip.Malloc(c.byref(out), 1 << 50) == "hipErrorOutOfMemory"
    address, host = hip.make("Malloc", 256), c.create_string_buffer(1024)
    assert hip.Memcpy(address, host, 257, 1) == "hipErrorInvalidValue"
    assert hip.Memcpy(address + 200, host, 57, 1) == "hipErrorInvalidValue"
    assert hip.Memcpy(host, address, 257, 2) == "hipErrorInvalidValue"
    assert hip.Memcpy(None, host, 1, 1) == "hipErrorInvalidValue"
    assert hip.Memcpy(address, host, 1, 5) == "hipErrorInvalidMemcpyDirection"
    assert hip.Memset(host, 0, 4) == "hipErrorInvalidValue"
    assert hip.Memset(address, 0, 257) == "hipErrorInvalidValue"
    assert hip.Memset2D(address, 64, 0, 65, 2) == "hipErrorInvalidValue"
    assert hip.Memcpy2D(address, 64, host, 64, 65, 2, 1) == "hipErrorInvalidPitchValue"
    assert hip.Memcpy2D(address, 64, host, 64, 64, 5, 1) == "hipErrorInvalidValue"
    assert hip.HostMalloc(c.byref(out), 4, 0xC0000000) == "hipErrorInvalidValue"
    assert hip.Free(address + 4) == "hipErrorInvalidValue"
    hip.check("Free", address)
    assert hip.Free(address) == "hipErrorInvalidValue"
    hip.check("Free", None)


def test_sets_and_copies_of_rows(hip: Hip) -> None:
    address = hip.make("Malloc", 64)
    hip.check("MemsetD32", address, 0x01020304, 16)
    hip.check("MemsetD16", address, 0xABCD, 2)
    hip.check("Memset2D", address + 16, 16, 0xEE, 4, 3)
    last = 0x01020304
    row = [0xEEEEEEEE, last, last, last]
    assert hip.words(address, 16) == [0xABCDABCD, last, last, last] + row * 3
    target = c.create_string_buffer(8)
    hip.check("Memcpy2D", target, 4, address + 12, 16, 4, 2, 2)
    assert target.raw == struct.pack("II", last, last)
    hip.check("Free", address)


def test_pitched_memory(hip: Hip) -> None:
    address, pitch = c.c_uint64(), c.c_size_t()
    hip.check("MallocPitch", c.byref(address), c.byref(pitch), 100, 3)
    assert pitch.value == 256
    assert hip.Memset2D(address.value, pitch.value, 1, 100, 3) == "hipSuccess"
    assert hip.Memset2D(address.value, pitch.value, 1, 100, 4) == "hipErrorInvalidValue"
    hip.check("Free", address.value)


def test_what_pointers_are(hip: Hip, major: int) -> None:
    attributes = api.PointerAttributes()
    at = c.byref(attributes)
    device = hip.make("Malloc", 64)
    hip.check("PointerGetAttributes", at, device + 8)
    assert (attributes.type, attributes.device, attributes.host_pointer) == (2 if major >= 6 else 1, 0, None)
    assert attributes.device_pointer == device + 8
    host = hip.make("HostMalloc", 64, 1)
    hip.check("PointerGetAttributes", at, host)
    assert (attributes.type, attributes.flags) == (1 if major >= 6 else 0, 1)
    assert attributes.host_pointer == host
    managed = hip.make("MallocManaged", 64, 1)
    hip.check("PointerGetAttributes", at, managed)
    assert (attributes.type, attributes.is_managed) == (3 if major >= 6 else 1, 1)
    unknown = c.create_string_buffer(8)
    if major >= 6:
        hip.check("PointerGetAttributes", at, unknown)
        assert (attributes.type, attributes.device) == (0, -2)
    else:
        assert hip.PointerGetAttributes(at, unknown) == "hipErrorInvalidValue"
    assert hip.PointerGetAttributes(at, None) == ("hipSuccess" if major >= 7 else "hipErrorInvalidValue")
    for address in (device, host, managed):
        hip.check("Free", address)


def test_memory_of_the_host(hip: Hip, module: int) -> None:
    words = (c.c_uint32 * 64)()
    address = c.addressof(words)
    function = hip.make("ModuleGetFunction", module, b"narrow")
    hip.check("HostRegister", address, 256, 0)
    assert hip.HostRegister(address, 256, 0) == "hipErrorHostMemoryAlreadyRegistered"
    assert hip.make("HostGetDevicePointer", address, 0) == address
    assert hip.launch(function, packed=struct.pack("Q", address)) == "hipSuccess"
    assert list(words) == list(range(64))
    hip.check("HostUnregister", address)
    assert hip.HostUnregister(address) == "hipErrorHostMemoryNotRegistered"


def test_free_memory(hip: Hip) -> None:
    free, total, less = c.c_size_t(), c.c_size_t(), c.c_size_t()
    hip.check("MemGetInfo", c.byref(free), c.byref(total))
    assert 0 < free.value <= total.value == 64 << 30
    address = hip.make("MallocAsync", 1 << 20, None)
    used = c.c_uint64()
    pool = hip.make("DeviceGetDefaultMemPool", 0)
    hip.check("MemPoolGetAttribute", pool, 7, c.byref(used))
    assert used.value >= 1 << 20
    hip.check("MemGetInfo", c.byref(less), None)
    hip.check("FreeAsync", address, None)


# ---- modules


def test_wrong_images(hip: Hip, images: dict[str, bytes], capfd: pytest.CaptureFixture[str]) -> None:
    out = c.c_uint64()
    assert hip.ModuleLoadData(c.byref(out), images["gfx942"]) == "hipErrorNoBinaryForGpu"
    assert "made for another GPU" in capfd.readouterr().err
    assert hip.ModuleLoadData(c.byref(out), b"nothing like it" * 10) == "hipErrorInvalidImage"
    assert hip.ModuleLoadData(c.byref(out), None) == "hipErrorInvalidValue"
    assert hip.ModuleLoad(c.byref(out), b"/no/such/file") == "hipErrorFileNotFound"
    assert hip.ModuleUnload(0) == "hipErrorInvalidHandle"
    assert hip.ModuleUnload(1234) == "hipErrorNotFound"


def test_files(hip: Hip, major: int, images: dict[str, bytes], tmp_path: Path) -> None:
    file, out = tmp_path / "code", c.c_uint64()
    file.write_bytes(b"")
    empty = "hipErrorInvalidImage" if major >= 7 else "hipErrorInvalidValue"
    assert hip.ModuleLoad(c.byref(out), str(file).encode()) == empty
    file.write_bytes(images["gfx90a"])
    loaded = hip.make("ModuleLoad", str(file).encode())
    hip.make("ModuleGetFunction", loaded, b"fill")
    hip.check("ModuleUnload", loaded)
    assert hip.ModuleGetFunction(c.byref(out), loaded, b"fill") == "hipErrorNotFound"


def bundle(entries: list[tuple[str, bytes]]) -> bytes:
    """A bundle as clang-offload-bundler writes it."""
    head = 24 + 8 + sum(24 + len(name) for name, _ in entries)
    table, data = b"", b""
    for name, code in entries:
        table += struct.pack("QQQ", head + len(data), len(code), len(name)) + name.encode()
        data += code
    return b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("Q", len(entries)) + table + data


@pytest.mark.parametrize(
    ("target", "good"),
    [
        ("hipv4-amdgcn-amd-amdhsa--gfx90a", True),
        ("hip-amdgcn-amd-amdhsa--gfx90a", True),
        ("hipv4-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-", True),
        ("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-", True),
        ("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+", False),
        ("hipv4-amdgcn-amd-amdhsa--gfx90c", False),
        ("hipv4-amdgcn-amd-amdhsa--gfx942", False),
        ("host-x86_64-unknown-linux--gfx90a", False),
    ],
)
def test_bundles(hip: Hip, images: dict[str, bytes], target: str, good: bool) -> None:
    image = bundle([("host-x86_64-unknown-linux--", b""), (target, images["gfx90a"])])
    out = c.c_uint64()
    assert hip.ModuleLoadData(c.byref(out), image) == ("hipSuccess" if good else "hipErrorNoBinaryForGpu")
    if good:
        hip.make("ModuleGetFunction", out.value, b"fill")
        hip.check("ModuleUnload", out.value)


def zstd(data: bytes) -> bytes | None:
    """Compressed by the system's library; None where there is none."""
    try:
        library = c.CDLL("libzstd.so.1")
    except OSError:
        return None
    library.ZSTD_compress.restype = library.ZSTD_compressBound.restype = c.c_size_t
    room = library.ZSTD_compressBound(c.c_size_t(len(data)))
    out = c.create_string_buffer(room)
    made = library.ZSTD_compress(out, c.c_size_t(room), data, c.c_size_t(len(data)), 3)
    return out.raw[:made]


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("method", ["zlib", "zstd"])
def test_compressed_bundles(hip: Hip, images: dict[str, bytes], version: int, method: str) -> None:
    plain = bundle([("hipv4-amdgcn-amd-amdhsa--gfx90a", images["gfx90a"])])
    packed = zlib.compress(plain) if method == "zlib" else zstd(plain)
    if packed is None:
        pytest.skip("needs libzstd.so.1")

    def image(plain_bytes: int) -> bytes:
        layout = "=4sHHIIQ" if version == 2 else "=4sHHQQQ"
        size = struct.calcsize(layout) + len(packed)
        return struct.pack(layout, b"CCOB", version, method == "zstd", size, plain_bytes, 0) + packed

    out = c.c_uint64()
    module = hip.make("ModuleLoadData", image(len(plain)))
    hip.make("ModuleGetFunction", module, b"fill")
    hip.check("ModuleUnload", module)
    assert hip.ModuleLoadData(c.byref(out), image(len(plain) - 1)) == "hipErrorInvalidImage"


def test_names_in_modules(hip: Hip, module: int) -> None:
    out, size = c.c_uint64(), c.c_size_t()
    assert hip.ModuleGetFunction(c.byref(out), module, b"no_such") == "hipErrorNotFound"
    assert hip.ModuleGetFunction(c.byref(out), module, b"") == "hipErrorInvalidValue"
    assert hip.ModuleGetFunction(c.byref(out), 0, b"fill") == "hipErrorInvalidHandle"
    assert hip.ModuleGetGlobal(c.byref(out), c.byref(size), module, b"no_such") == "hipErrorNotFound"
    hip.check("ModuleGetGlobal", c.byref(out), c.byref(size), module, b"table")
    assert (size.value, hip.words(out.value, 4)) == (16, [10, 20, 30, 40])


def test_attributes_of_functions(hip: Hip, module: int) -> None:
    value = c.c_int()
    function = hip.make("ModuleGetFunction", module, b"narrow")
    hip.check("FuncGetAttribute", c.byref(value), 0, function)
    assert value.value == 128
    assert hip.FuncGetAttribute(c.byref(value), 77, function) == "hipErrorInvalidValue"
    assert hip.FuncGetAttribute(c.byref(value), 0, 0) == "hipErrorInvalidHandle"
    hip.check("ModuleOccupancyMaxActiveBlocksPerMultiprocessor", c.byref(value), function, 128, 32 << 10)
    assert value.value == 2  # by LDS
    hip.check("ModuleOccupancyMaxActiveBlocksPerMultiprocessor", c.byref(value), function, 128, 0)
    assert value.value == 16  # by slots of waves


# ---- launches


def test_arguments_one_by_one_and_packed(hip: Hip, module: int) -> None:
    function = hip.make("ModuleGetFunction", module, b"fill")
    out = hip.upload(bytes(4 * 128))
    params: list[object] = [c.c_uint64(out), c.c_uint8(5), c.c_uint64(7 << 32), c.c_uint32(100)]
    expected = [12 + 10 * (i % 4 + 1) if i < 100 else 0 for i in range(128)]
    assert hip.launch(function, params, grid=(2, 1, 1)) == "hipSuccess"
    assert hip.words(out, 128) == expected
    hip.check("Memset", out, 0, 512)
    assert hip.launch(function, packed=fill(out, count=100), grid=(2, 1, 1)) == "hipSuccess"
    assert hip.words(out, 128) == expected
    hip.check("Free", out)


def test_wrong_launches(hip: Hip, major: int, module: int) -> None:
    function = hip.make("ModuleGetFunction", module, b"fill")
    narrow = hip.make("ModuleGetFunction", module, b"narrow")
    packed = fill(hip.upload(bytes(256)))
    configuration, value = "hipErrorInvalidConfiguration", "hipErrorInvalidValue"
    assert hip.launch(function) == value  # no arguments
    assert hip.launch(function, packed=packed[:-4]) == value
    assert hip.launch(function, [c.c_uint64(0)], packed=packed) == value
    assert hip.launch(0, packed=packed) == "hipErrorInvalidHandle"
    assert hip.launch(function, packed=packed, block=(0, 1, 1)) == configuration
    assert hip.launch(function, packed=packed, grid=(0, 1, 1)) == (value if major >= 7 else configuration)
    assert hip.launch(function, packed=packed, block=(1024, 2, 1)) == (configuration if major >= 7 else value)
    assert hip.launch(function, packed=packed, grid=(1 << 30, 1, 1)) == configuration
    assert hip.launch(function, packed=packed, shared=65 << 10) == value
    assert hip.launch(narrow, packed=packed[:8], block=(256, 1, 1)) == "hipErrorLaunchFailure"
    assert hip.launch(function, packed=packed, stream=4321) == (
        "hipErrorContextIsDestroyed" if major >= 7 else value
    )
    hip.check("DeviceSynchronize")  # the device is none the worse


def test_kernels_of_another_device(hip: Hip, module: int) -> None:
    function = hip.make("ModuleGetFunction", module, b"fill")
    hip.check("SetDevice", 1)
    assert hip.launch(function, packed=fill(hip.upload(bytes(256)))) == "hipErrorInvalidHandle"


def test_launches_from_threads(hip: Hip, module: int) -> None:
    function = hip.make("ModuleGetFunction", module, b"counted")
    out = hip.upload(bytes(4))

    def work() -> None:
        for _ in range(20):
            assert hip.launch(function, packed=struct.pack("Q", out), stream=PER_THREAD) == "hipSuccess"
            memory = hip.make("Malloc", 100)
            hip.check("Free", memory)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert hip.words(out, 1) == [4 * 20 * 64]


# ---- streams and events


def test_streams(hip: Hip) -> None:
    value = c.c_uint()
    stream = hip.make("StreamCreateWithPriority", 1, -1)
    hip.check("StreamGetFlags", stream, c.byref(value))
    assert value.value == 1
    priority = c.c_int()
    hip.check("StreamGetPriority", stream, c.byref(priority))
    assert priority.value == -1
    hip.check("StreamGetDevice", stream, c.byref(priority))
    assert priority.value == 0
    for handle in (stream, 0, 1, PER_THREAD):
        hip.check("StreamSynchronize", handle)
        hip.check("StreamQuery", handle)
    hip.check("StreamDestroy", stream)
    assert hip.StreamSynchronize(stream) == "hipErrorContextIsDestroyed"
    assert hip.StreamDestroy(0) == "hipErrorInvalidHandle"
    assert hip.StreamCreateWithFlags(c.byref(c.c_uint64()), 2) == "hipErrorInvalidValue"


def test_events(hip: Hip) -> None:
    first, second, untimed = (
        hip.make("EventCreate"),
        hip.make("EventCreate"),
        hip.make("EventCreateWithFlags", 2),
    )
    passed = c.c_float(-1)
    assert hip.EventElapsedTime(c.byref(passed), first, second) == "hipErrorInvalidHandle"  # not recorded
    for event in (first, second, untimed):
        hip.check("EventRecord", event, None)
        hip.check("EventQuery", event)
        hip.check("EventSynchronize", event)
    hip.check("EventElapsedTime", c.byref(passed), first, second)
    assert passed.value >= 0
    assert hip.EventElapsedTime(c.byref(passed), first, untimed) == "hipErrorInvalidHandle"
    for event in (first, second, untimed):
        hip.check("EventDestroy", event)
    assert hip.EventRecord(first, None) == "hipErrorInvalidHandle"
    assert hip.EventCreateWithFlags(c.byref(c.c_uint64()), 0x60000000) == "hipErrorInvalidValue"


# ---- capture


class Capture:
    """A stream that captures."""

    def __init__(self, hip: Hip, mode: int, flags: int = 0) -> None:
        self.hip = hip
        self.stream = hip.make("StreamCreateWithFlags", flags)
        hip.check("StreamBeginCapture", self.stream, mode)

    def status(self) -> int:
        status = c.c_int(-1)
        self.hip.check("StreamIsCapturing", self.stream, c.byref(status))
        return status.value

    def end(self) -> str:
        graph = c.c_uint64()
        result = str(self.hip.StreamEndCapture(self.stream, c.byref(graph)))  # type: ignore[operator]
        assert (graph.value != 0) == (result == "hipSuccess")
        if graph.value:
            self.hip.check("GraphDestroy", graph.value)
        self.hip.check("StreamDestroy", self.stream)
        return result


def test_capture_begins_and_ends(hip: Hip) -> None:
    graph = c.c_uint64()
    assert hip.StreamBeginCapture(0, GLOBAL) == "hipErrorStreamCaptureUnsupported"
    assert hip.StreamBeginCapture(PER_THREAD, 3) == "hipErrorInvalidValue"
    capture = Capture(hip, GLOBAL)
    assert hip.StreamBeginCapture(capture.stream, GLOBAL) == "hipErrorIllegalState"
    assert capture.status() == ACTIVE
    assert capture.end() == "hipSuccess"
    stream = hip.make("StreamCreate")
    assert hip.StreamEndCapture(stream, c.byref(graph)) == "hipErrorIllegalState"
    status = c.c_int(-1)
    hip.check("StreamIsCapturing", stream, c.byref(status))
    assert status.value == NONE
    hip.check("StreamDestroy", stream)


@pytest.mark.parametrize("mode", [GLOBAL, THREAD_LOCAL, RELAXED])
@pytest.mark.parametrize(
    "call", ["Malloc", "Free", "HostMalloc", "DeviceSynchronize", "StreamSynchronize", "Memcpy"]
)
def test_capture_forbids(hip: Hip, mode: int, call: str) -> None:
    memory, out = hip.upload(bytes(64)), c.c_uint64()
    capture = Capture(hip, mode)
    unsupported = "hipErrorStreamCaptureUnsupported"
    if call == "Memcpy":
        result, expected = hip.Memcpy(memory, bytes(64), 64, 1), "hipErrorStreamCaptureImplicit"
    elif call == "DeviceSynchronize":
        result, expected = hip.DeviceSynchronize(), unsupported
    elif call == "StreamSynchronize":
        result, expected = hip.StreamSynchronize(capture.stream), unsupported
    else:
        result = hip.Free(memory) if call == "Free" else getattr(hip, call)(c.byref(out), 64, 0)
        expected = "hipSuccess" if mode == RELAXED else unsupported
    assert result == expected
    assert capture.status() == (ACTIVE if expected == "hipSuccess" else INVALIDATED)
    if expected != "hipSuccess":
        assert hip.MemsetAsync(memory, 0, 64, capture.stream) == "hipErrorStreamCaptureInvalidated"
    assert capture.end() == ("hipSuccess" if expected == "hipSuccess" else "hipErrorStreamCaptureInvalidated")


@pytest.mark.parametrize("mode", [GLOBAL, THREAD_LOCAL, RELAXED])
def test_capture_and_other_threads(hip: Hip, mode: int) -> None:
    """A global one makes other threads' allocations wrong; all but relaxed ones end where they began."""
    capture = Capture(hip, mode)
    seen = []

    def other() -> None:
        graph = c.c_uint64()
        if mode != RELAXED:
            seen.append(hip.StreamEndCapture(capture.stream, c.byref(graph)))
        seen.append(hip.Malloc(c.byref(c.c_uint64()), 4))

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    wrong_thread = ["hipErrorStreamCaptureWrongThread"] if mode != RELAXED else []
    assert seen == [*wrong_thread, "hipErrorStreamCaptureUnsupported" if mode == GLOBAL else "hipSuccess"]
    assert capture.end() == ("hipErrorStreamCaptureInvalidated" if mode == GLOBAL else "hipSuccess")


def test_legacy_stream_beside_capture(hip: Hip, module: int) -> None:
    function = hip.make("ModuleGetFunction", module, b"narrow")
    packed = struct.pack("Q", hip.upload(bytes(256)))
    blocking = Capture(hip, RELAXED)
    assert hip.launch(function, packed=packed) == "hipErrorStreamCaptureImplicit"
    assert blocking.end() == "hipErrorStreamCaptureInvalidated"
    unblocking = Capture(hip, RELAXED, flags=1)
    assert hip.launch(function, packed=packed) == "hipSuccess"
    assert unblocking.end() == "hipSuccess"


def test_events_of_captures(hip: Hip) -> None:
    event, done = hip.make("EventCreate"), hip.make("EventCreate")
    hip.check("EventRecord", done, None)
    capture = Capture(hip, RELAXED)
    hip.check("EventRecord", event, capture.stream)
    assert hip.EventQuery(event) == "hipErrorCapturedEvent"
    assert capture.end() == "hipErrorStreamCaptureInvalidated"
    hip.check("EventQuery", event)
    capture = Capture(hip, RELAXED)
    assert hip.StreamWaitEvent(capture.stream, done, 0) == "hipErrorStreamCaptureIsolation"
    assert capture.end() == "hipErrorStreamCaptureInvalidated"
    first, second = Capture(hip, RELAXED), Capture(hip, RELAXED)
    hip.check("EventRecord", event, first.stream)
    assert hip.StreamWaitEvent(second.stream, event, 0) == "hipErrorStreamCaptureMerge"
    assert (first.end(), second.end()) == ("hipErrorStreamCaptureInvalidated",) * 2


def test_forks_must_join(hip: Hip) -> None:
    memory, event, side = hip.upload(bytes(64)), hip.make("EventCreate"), hip.make("StreamCreate")
    graph = c.c_uint64()
    for joins in (False, True):
        capture = Capture(hip, GLOBAL)
        hip.check("EventRecord", event, capture.stream)
        hip.check("StreamWaitEvent", side, event, 0)
        hip.check("MemsetAsync", memory, 1, 64, side)
        assert hip.StreamEndCapture(side, c.byref(graph)) == "hipErrorStreamCaptureUnmatched"
        if joins:
            hip.check("EventRecord", event, side)
            hip.check("StreamWaitEvent", capture.stream, event, 0)
        assert capture.end() == ("hipSuccess" if joins else "hipErrorStreamCaptureUnjoined")
        hip.check("StreamSynchronize", side)  # an ordinary stream again
    assert hip.words(memory, 1) == [0]  # captured, not done


def test_capture_of_a_launch(hip: Hip, module: int) -> None:
    function = hip.make("ModuleGetFunction", module, b"counted")
    out, stream, graph = hip.upload(bytes(4)), hip.make("StreamCreate"), c.c_uint64()
    hip.check("StreamBeginCapture", stream, GLOBAL)
    for _ in range(3):
        assert hip.launch(function, packed=struct.pack("Q", out), stream=stream) == "hipSuccess"
    hip.check("StreamEndCapture", stream, c.byref(graph))
    assert hip.words(out, 1) == [0]
    launched = hip.make("GraphInstantiate", graph.value, None, None, 0)
    for times in (1, 2):
        hip.check("GraphLaunch", launched, stream)
        assert hip.words(out, 1) == [3 * 64 * times]
    hip.check("ModuleUnload", module)
    assert hip.GraphLaunch(launched, stream) == "hipErrorInvalidHandle"
    for call, handle in (("GraphExecDestroy", launched), ("GraphDestroy", graph.value)):
        hip.check(call, handle)
        assert getattr(hip, call)(handle) == "hipErrorInvalidValue"


def test_updates_of_graphs(hip: Hip) -> None:
    memory, node, result = hip.upload(bytes(64)), c.c_uint64(), c.c_int()

    def captured(values: list[int]) -> int:
        stream, graph = hip.make("StreamCreate"), c.c_uint64()
        hip.check("StreamBeginCapture", stream, RELAXED)
        for i, value in enumerate(values):
            hip.check("MemsetD32Async", memory + 4 * i, value, 1, stream)
        hip.check("StreamEndCapture", stream, c.byref(graph))
        hip.check("StreamDestroy", stream)
        return graph.value

    launched = hip.make("GraphInstantiateWithFlags", captured([1, 2]), 0)
    hip.check("GraphExecUpdate", launched, captured([3, 4]), c.byref(node), c.byref(result))
    assert result.value == 0
    hip.check("GraphLaunch", launched, None)
    assert hip.words(memory, 3) == [3, 4, 0]
    other = captured([5, 6, 7])
    failure = hip.GraphExecUpdate(launched, other, c.byref(node), c.byref(result))
    assert (failure, result.value) == ("hipErrorGraphExecUpdateFailure", 2)
    hip.check("GraphLaunch", launched, None)
    assert hip.words(memory, 3) == [3, 4, 0]
