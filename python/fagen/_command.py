# fagen: what the Python commands of `fagen` share: how they read their command lines.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import argparse


class Parser(argparse.ArgumentParser):
    """Text stays as it is laid out; a mistake ends with 1, as everywhere in fagen."""

    def __init__(self, command, description, epilog=None):
        super().__init__(prog=f"fagen {command}", description=description, epilog=epilog,
                         formatter_class=argparse.RawDescriptionHelpFormatter)

    def error(self, message):
        unknown = message.split(": ")[-1].split()
        if message.startswith("unrecognized arguments: ") and unknown:
            import difflib
            known = [option for action in self._actions for option in action.option_strings if option.startswith("--")]
            near = difflib.get_close_matches(unknown[0].split("=")[0], known, 1)
            message = f"unexpected '{unknown[0]}'; " + (f"did you mean '{near[0]}'?" if near else f"it takes {', '.join(known)}")
        self.exit(1, f"{self.prog}: error: {message}; {self.prog} --help shows what it takes\n")
