"""Builds the wheel for pip (PEP 517), with the standard library alone: pip downloads nothing, and no compiler runs if a
library exists. The wheel contains the shared library that is found first:

    1. TENON_LIBRARY in the environment
    2. build/libtenon.so of this checkout
    3. the one that cmake builds, if cmake is installed, in build/python

Without one the wheel is for any machine: `import tenon` then loads the system's library, for example of the Debian
package libtenon0.2. A library of another version is an error."""
import base64
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sysconfig
import tempfile
import zipfile

import declarations

here = pathlib.Path(__file__).resolve().parent
checkout = here.parent
declarations.write()
VERSION = re.search(r"VERSION = .([0-9.]+).", (here / "tenon" / "_declarations.py").read_text("utf8"))[1]
SONAME = "libtenon.so." + ".".join(VERSION.split(".")[:2])
METADATA = """Metadata-Version: 2.1
Name: tenon
Version: %s
Summary: Tenon from Python: tensors that share memory with NumPy, autograd, models and tokenizers
License: MIT
Requires-Python: >=3.8
Description-Content-Type: text/markdown

%s"""


def build_library():
    """The library that cmake builds in build/python; None without cmake or without its sources."""
    if not shutil.which("cmake") or not (checkout / "CMakeLists.txt").exists():
        return None
    made = checkout / "build" / "python"
    options = ["-DCMAKE_BUILD_TYPE=Release", "-DTENON_TESTS=OFF", "-DTENON_PROGRAMS=OFF", "-DTENON_MPI=OFF"]
    build = ["--build", made, "-j", os.cpu_count() or 1, "--target", "tenon"]
    for command in (["-S", checkout, "-B", made] + options, build):
        if subprocess.call(["cmake"] + [str(word) for word in command]):
            raise SystemExit("cmake failed; set TENON_LIBRARY to the path of a libtenon.so, or install what it needs")
    return made / SONAME


def library():
    """The bytes of the library without debug information, or None."""
    given = os.environ.get("TENON_LIBRARY")
    path = pathlib.Path(given) if given else checkout / "build" / SONAME
    if not path.exists():
        if given:
            raise SystemExit("TENON_LIBRARY is '%s', which does not exist" % given)
        path = build_library()
    if path is None:
        return None
    data = path.read_bytes()
    if SONAME.encode() + b"\0" not in data:
        raise SystemExit("'%s' is not %s; build the version %s of this package" % (path, SONAME, VERSION))
    if shutil.which("strip"):
        with tempfile.TemporaryDirectory() as folder:
            copy = os.path.join(folder, SONAME)
            shutil.copy(path, copy)
            if not subprocess.call(["strip", "--strip-unneeded", copy]):
                data = pathlib.Path(copy).read_bytes()
    return data


def metadata():
    return (METADATA % (VERSION, (here / "README.md").read_text("utf8"))).encode()


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """So that pip does not build a wheel to read its name."""
    info = pathlib.Path(metadata_directory) / ("tenon-%s.dist-info" % VERSION)
    info.mkdir()
    (info / "METADATA").write_bytes(metadata())
    return info.name


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def write_wheel(folder, files, tag):
    """Writes the files, {name: bytes}, and what a wheel adds. The same files give the same bytes."""
    info = "tenon-%s.dist-info/" % VERSION
    files[info + "METADATA"] = metadata()
    pure = "true" if tag.endswith("any") else "false"
    wheel = "Wheel-Version: 1.0\nGenerator: tenon\nRoot-Is-Purelib: %s\nTag: %s\n" % (pure, tag)
    files[info + "WHEEL"] = wheel.encode()
    if (checkout / "LICENSE").exists():
        files[info + "LICENSE"] = (checkout / "LICENSE").read_bytes()
    record = []
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record.append("%s,sha256=%s,%d\n" % (name, digest, len(data)))
    files[info + "RECORD"] = ("".join(record) + info + "RECORD,,\n").encode()
    path = "tenon-%s-%s.whl" % (VERSION, tag)
    with zipfile.ZipFile(os.path.join(folder, path), "w", zipfile.ZIP_DEFLATED) as z:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            z.writestr(entry, data)
    return path


def package():
    """The files of the package without the library: {name: bytes}."""
    found = sorted((here / "tenon").iterdir())
    return {"tenon/" + p.name: p.read_bytes() for p in found if p.suffix in (".py", ".pyi", ".typed")}


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    files, data = package(), library()
    if data is None:
        return write_wheel(wheel_directory, files, "py3-none-any")
    files["tenon/" + SONAME] = data
    return write_wheel(wheel_directory, files, "py3-none-" + re.sub("[-.]", "_", sysconfig.get_platform()))


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """pip install -e: the package stays here and loads build/libtenon.so of the checkout."""
    return write_wheel(wheel_directory, {"tenon.pth": (str(here) + "\n").encode()}, "py3-none-any")


class UnsupportedOperation(Exception):
    """A source archive of this folder alone could not build the library."""


def build_sdist(sdist_directory, config_settings=None):
    raise UnsupportedOperation("tenon has no source archive; install from a checkout: pip install ./python")
