# fagen: the platform tag of a wheel, from what its binaries ask of the system.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""wheel_tag.py --check WHEEL | --retag WHEEL [--at-most 2.28]

--check: exits with 2 where a binary asks for a later glibc than the wheel's tag says, or for a library that not every system has.
--retag: names the wheel manylinux_2_N, N the latest glibc that a binary of it asks for, at least 17, and prints its path. Exits with 2
where that is later than --at-most, or a library is asked for.
Reads ELF by objdump.
"""
import argparse
import base64
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import zipfile

_ELF = b"\x7fELF"
_OLDEST = (2, 17)
# Of every Linux with glibc, and what the wheel itself brings.
_SYSTEM = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "libgcc_s.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
_NEWEST_GCC = (4, 8)  # symbol versions of libgcc_s that RHEL 8's has


class Mistake(Exception):
    """Of the command line, or of a file."""


class Refused(Exception):
    """A wheel that does not run where it says, or should."""


def numbers(text):
    return tuple(map(int, text.split(".")))


def asked_of(file):
    """({(set of versions, version): symbols}, libraries) of an ELF file; the loader refuses what these versions are not there for."""
    text = subprocess.run(["objdump", "-p", file], check=True, capture_output=True, text=True).stdout
    versions = set(re.findall(r"\s(GLIBC|GCC|GLIBCXX|CXXABI)_([0-9.]+)$", text.split("Version References:")[-1], re.M)) if "Version References:" in text else set()
    return {(name, numbers(version)) for name, version in versions}, re.findall(r"NEEDED\s+(\S+)", text)


def symbols_of(file, version):
    """Those that need the version, to say where it comes from."""
    text = subprocess.run(["objdump", "-T", file], check=True, capture_output=True, text=True).stdout
    return re.findall(rf"\(?GLIBC_{re.escape('.'.join(map(str, version)))}\)?\s+(\w+)$", text, re.M)


def binaries_in(wheel, folder):
    """(name in the wheel, path) of its ELF files, unpacked to the folder."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            with archive.open(name) as member:
                if member.read(4) != _ELF:
                    continue
            yield name, archive.extract(name, folder)


def examine(wheel, allowed=None):
    """(the latest glibc that a binary asks for, problems). allowed: that of the tag."""
    latest, problems = _OLDEST, []
    with tempfile.TemporaryDirectory() as folder:
        found = list(binaries_in(wheel, folder))
        own = {os.path.basename(name) for name, _ in found}
        for name, path in found:
            versions, libraries = asked_of(path)
            glibc = max([version for kind, version in versions if kind == "GLIBC"], default=_OLDEST)
            latest = max(latest, glibc)
            if allowed and glibc > allowed:
                late = sorted(version for kind, version in versions if kind == "GLIBC" and version > allowed)
                told = ", ".join(f"{symbol}@{'.'.join(map(str, version))}" for version in late for symbol in symbols_of(path, version))
                problems.append(f"{name} asks for {told or late}; at most GLIBC_{'.'.join(map(str, allowed))} is there")
            problems += [f"{name} asks for {kind}_{'.'.join(map(str, version))}" for kind, version in sorted(versions)
                         if kind in ("GLIBCXX", "CXXABI") or (kind == "GCC" and version > _NEWEST_GCC)]
            problems += [f"{name} asks for {library}, which not every system has" for library in libraries if library not in _SYSTEM | own]
    return latest, problems


def tag_of(wheel):
    """The glibc of the platform tag; Mistake where the tag says none."""
    found = re.search(r"-manylinux_(\d+)_(\d+)_\w+\.whl$", os.path.basename(wheel))
    if not found:
        raise Mistake(f"{wheel} has no manylinux tag; --retag gives one")
    return int(found[1]), int(found[2])


def record_line(name, content):
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}"


def check(wheel, allowed):
    """The latest glibc that a binary asks for; Refused with what asks for more than `allowed`."""
    latest, problems = examine(wheel, allowed)
    if problems:
        raise Refused("\n".join(f"{os.path.basename(wheel)}: {problem}" for problem in problems))
    return latest


def retag(wheel, at_most):
    """Writes the wheel anew, its WHEEL and RECORD with the tag, and removes the old one; gives the new path."""
    latest = check(wheel, at_most)
    folder, base = os.path.split(wheel)
    stem, old = re.fullmatch(r"(.+-[^-]+-[^-]+-[^-]+)-([^-]+)\.whl", base).groups()
    machine = re.search(r"(x86_64|aarch64)$", old)[1]
    new = f"manylinux_{latest[0]}_{latest[1]}_{machine}"
    path = os.path.join(folder, f"{stem}-{new}.whl")
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(path + ".tmp", "w", zipfile.ZIP_DEFLATED) as target:
        records = {line.rsplit(",", 2)[0]: line for name in source.namelist() if name.endswith(".dist-info/RECORD")
                   for line in source.read(name).decode().splitlines()}
        record = None
        for info in source.infolist():
            content = source.read(info)
            if info.filename.endswith(".dist-info/RECORD"):
                record = info
                continue
            if info.filename.endswith(".dist-info/WHEEL"):
                content = re.sub(rb"^(Tag: \S+-)[^-\s]+$", rb"\g<1>" + new.encode(), content, flags=re.M)
                records[info.filename] = record_line(info.filename, content)
            target.writestr(info, content)
        target.writestr(record, "\n".join(records.values()) + "\n")
    os.replace(path + ".tmp", path)
    if path != wheel:
        os.remove(wheel)
    return path


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise Mistake(message)


def main():
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--check", metavar="WHEEL")
    mode.add_argument("--retag", metavar="WHEEL")
    parser.add_argument("--at-most", type=numbers)
    try:
        options = parser.parse_args()
        if options.retag:
            print(retag(options.retag, options.at_most))
        else:
            latest = check(options.check, tag_of(options.check))
            print(f"{os.path.basename(options.check)}: GLIBC_{latest[0]}.{latest[1]}")
    except Refused as refused:
        print(refused, file=sys.stderr)
        return 2
    except (Mistake, OSError, zipfile.BadZipFile) as error:
        print(f"fagen: error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
