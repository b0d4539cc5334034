# fagen: makes two results databases of the tuner: one with settings that are no JSON, one whose last page is damaged.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import sqlite3

SCHEMA = """
CREATE TABLE study (
  id INTEGER PRIMARY KEY, gpu TEXT NOT NULL, driver TEXT NOT NULL, compiler TEXT NOT NULL, spec_hash TEXT NOT NULL,
  problem TEXT NOT NULL, description TEXT NOT NULL, UNIQUE (gpu, driver, compiler, spec_hash, problem));
CREATE TABLE evaluation (
  study INTEGER NOT NULL REFERENCES study, candidate TEXT NOT NULL, settings TEXT NOT NULL, outcome TEXT NOT NULL,
  stage TEXT NOT NULL, why TEXT NOT NULL, samples TEXT NOT NULL, median REAL NOT NULL, seconds REAL NOT NULL,
  generation INTEGER NOT NULL, attempts INTEGER NOT NULL, strategy TEXT NOT NULL, PRIMARY KEY (study, candidate));
"""
ABOUT = ('{"kernel": "k", "target": "sm_89", "dtype": "f16", "accum": "f32", "mask": "none", "lse": true, "head_dim_qk": 64, '
         '"head_dim_v": 64, "batch": 1, "heads": 1, "kv_heads": 1, "seq_q": 64, "seq_kv": 64, "sms": 58}')


def make(file, settings, count):
    database = sqlite3.connect(file)
    database.executescript(SCHEMA)
    database.execute("INSERT INTO study VALUES (1, 'g', 'd', 'c', 'h', 'p', ?)", (ABOUT,))
    for i in range(count):
        database.execute("INSERT INTO evaluation VALUES (1, ?, ?, 'ok', '', '', '[1.0]', 1.0, 1.0, 0, 1, 's')",
                         ("c" * (i + 1), settings))
    database.commit()
    database.close()


make("text.db", "no JSON", 1)
make("page.db", "{}", 300)
with open("page.db", "r+b") as file:
    file.seek(0, 2)
    size = file.tell()
    for page in range(3, size // 4096):
        file.seek(page * 4096)
        file.write(b"\xff" * 4096)
