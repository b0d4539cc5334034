"""write-program.py FILE COMMAND: a program that runs the command with its own arguments."""
import os
import sys

with open(sys.argv[1], "w", encoding="utf-8") as file:
    file.write(f'#!/bin/sh\nexec {sys.argv[2]} "$@"\n')
os.chmod(sys.argv[1], 0o755)
