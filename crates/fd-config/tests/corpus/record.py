#!/usr/bin/env python3
"""Records what the stock programs say to each input of inputs.toml, into stock.toml.

    record.py ROOT

ROOT is an unpacked Debian root with bacula-fd 15.0.3; the programs run in it by chroot, so this needs root. Files are
written only below ROOT/tmp/conf-corpus. Bytes are written as the characters U+0000 to U+00FF. Dates in front of lines
become "DD-Mon HH:MM ".
"""

import pathlib
import re
import subprocess
import sys
import tomllib

HERE = pathlib.Path(__file__).parent
DIR = "/tmp/conf-corpus"
ENVIRONMENT = {"HOME": "/root", "PATH": "/usr/bin:/bin"}


def build(base, place, text):
    """The whole file for a text that stands at a place of the base configuration."""
    lines = base.split("\n")
    match place:
        case "only":
            return text
        case "top":
            return text + "\n" + base
        case "director":
            return "Director {\n Name = q\n Password = p\n " + text + "\n}\n" + base
        case "schedule" | "statistics":
            return place.capitalize() + " {\n Name = s\n " + text + "\n}\n" + base
        case "daemon":
            return "\n".join(lines[:10] + ["  " + text] + lines[10:])
        case "addresses":
            return "\n".join(lines[:6] + ["  " + text] + lines[8:])
        case "messages":
            return "\n".join(lines[:13] + ["  " + text] + lines[14:])
    raise ValueError(place)


def run(root, *argv):
    result = subprocess.run(
        ["/usr/sbin/chroot", root, *argv], env=ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False
    )
    text = result.stdout.decode("latin1")
    # Leaks that the stock daemon reports of itself, and the crash report of its own making.
    text = re.sub(r"^[^\n]*smartall\.c[^\n]*\n", "", text, flags=re.M)
    return result.returncode, re.sub(r"^\d\d-[A-Z][a-z]{2} \d\d:\d\d ", "DD-Mon HH:MM ", text, flags=re.M)


def quoted(text):
    def escape(match):
        char = match[0]
        return {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\"}.get(char) or f"\\u{ord(char):04x}"

    return '"' + re.sub(r'[\x00-\x1f"\\\x7f-\x9f]', escape, text) + '"'


def main():
    root = sys.argv[1]
    place = pathlib.Path(root + DIR)
    for directory in ("work", "run"):
        (place / directory).mkdir(parents=True, exist_ok=True)
    config = f"{DIR}/fd.conf"
    out = ["# Written by record.py: what bacula-fd -t and bfdjson 15.0.3 say to the inputs of inputs.toml.\n"]
    inputs = tomllib.loads((HERE / "inputs.toml").read_text())
    for case in inputs["case"]:
        data = build(inputs["base"], case["at"], case["text"])
        files = case.get("files", {})
        for name, text in files.items():
            (place / name).write_bytes(text.encode("latin1"))
        (place / "fd.conf").write_bytes(data.encode("latin1"))
        status, stdout = run(root, "/usr/sbin/bacula-fd", "-t", "-c", config)
        if status == 11 or status < 0:
            status, stdout = 11, stdout.split("DD-Mon")[0]
        name = quoted(case["name"])
        out.append(f"\n[[case]]\nname = {name}\nstatus = {status}\nstdout = {quoted(stdout)}\n")
        if case.get("json", status == 0):
            out.append(f"json = {quoted(run(root, '/usr/sbin/bfdjson', '-c', config)[1])}\n")
        for name in files:
            (place / name).unlink()
    (HERE / "stock.toml").write_text("".join(out))


main()
