# fagen: interrupts a tuner, kills it at many moments, then lets it end; counts what was run twice.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import os
import signal
import sqlite3
import subprocess
import sys
import time

database, command = sys.argv[1], sys.argv[3:]


def records():
    if not os.path.exists(database):
        return {}
    with sqlite3.connect(database) as connection:
        try:
            rows = connection.execute("SELECT candidate, outcome, samples, seconds, attempts FROM evaluation").fetchall()
        except sqlite3.OperationalError:  # killed before the tables were made
            return {}
    return {row[0]: row[1:] for row in rows}


def ended(found):
    return {name: row for name, row in found.items() if row[0] not in ("running", "gated")}


def waitFor(child, count):
    """Until so many candidates have ended, or the tuner has."""
    while len(ended(records())) < count and child.poll() is None:
        time.sleep(0.01)


# Ctrl-C reaches the whole group; the second candidate never ends.
child = subprocess.Popen(command + ["--db", database], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
waitFor(child, 1)
time.sleep(0.3)
os.killpg(child.pid, signal.SIGINT)
errors = child.communicate(timeout=20)[1].decode()
if "stopped; the same command goes on from here" not in errors:
    sys.exit("it does not say that it stopped: " + errors)
if sorted(row[0] for row in records().values()) != ["gated", "gated", "ok"]:
    sys.exit(f"after Ctrl-C: {records()}")
print(f"interrupted: exit code {child.returncode}, the first is kept, the second forgotten")

# While one works, another one may not.
child = subprocess.Popen(command + ["--db", database], stdout=subprocess.DEVNULL)
time.sleep(0.5)
second = subprocess.run(command + ["--db", database], capture_output=True, text=True)
child.send_signal(signal.SIGKILL)
child.wait()
if second.returncode != 1 or "another tuner works on" not in second.stderr:
    sys.exit(f"a second tuner: {second}")

before = ended(records())
for delay in [0.03, 0.1, 0.15, 0.2, 0.3, 0.5, 1.2]:
    child = subprocess.Popen(command + ["--db", database], stdout=subprocess.DEVNULL)
    time.sleep(delay)
    child.send_signal(signal.SIGKILL)
    child.wait()
    now = records()
    for name, row in ended(before).items():
        if now.get(name) != row:
            sys.exit(f"{name} had ended as {row} and is {now.get(name)} now")
    before = now
    # A candidate that is blamed for five deaths of the tuner would be given up: it is innocent here.
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE evaluation SET attempts = 1 WHERE outcome = 'running'") if now else None
known = ended(before)
subprocess.run(command + ["--db", database], check=True, stdout=subprocess.DEVNULL)
after = records()
for name, row in known.items():
    if after[name] != row:
        sys.exit(f"{name} ran twice: {row}, then {after[name]}")
print("nothing lost, nothing run twice; outcomes", *sorted(row[0] for row in after.values()))
