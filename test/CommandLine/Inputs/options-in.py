# fagen: fails unless each option that --help shows is in a tool's manual page and completions: options-in.py TOOL
# bash is asked itself; of the others, the part that belongs to the command is looked at.
import re
import subprocess
import sys

tool = sys.argv[1]


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def options(command):
    """The options in --help, the long form where there are two. LLVM shows --help-list only in help of several parts."""
    for line in output(tool, *command, "--help").splitlines():
        if re.match(r"\s{1,4}-", line):
            names = [name for name in line.split()[0].split(",") if name.startswith("-")]
            long = [name for name in names if name.startswith("--")] or names
            yield from (re.match(r"-{1,2}[\w-]+", name).group(0) for name in long)


def part(text, begin, end):
    """From the line that `begin` matches to the next that `end` does."""
    found = re.search(begin, text, re.M)
    rest = text[found.end():] if found else ""
    following = re.search(end, rest, re.M)
    return rest[:following.start()] if following else rest


made = {kind: output(tool, f"--generate={kind}") for kind in ("man", "bash", "zsh", "fish")}
commands = [[]] + [[name] for name in re.findall(rf"^complete -c {tool} -n __fish_use_subcommand -a (\S+)", made["fish"], re.M)]
help_of_all = output(tool, "--help")
missing, count = [], 0
for command in commands:
    name = " ".join(command)
    if name and not re.search(rf"^\s+{name}\b", help_of_all, re.M):
        missing.append(f"{tool} --help: {name}")
    words = " ".join([tool, *command, "--"])
    asked = f"COMP_WORDS=({words}); COMP_CWORD={1 + len(command)}; _{tool.replace('-', '_')}; echo ${{COMPREPLY[*]}}"
    short = asked.replace("--)", "-)")
    bash = subprocess.run(["bash", "-c", made["bash"] + asked + "\n" + short], capture_output=True, text=True).stdout.split()
    heading = f"{tool} {name}".upper() if name else "OPTIONS"
    places = {
        "man": part(made["man"], rf"^\.SH {re.escape(heading)}$", r"^\.SH "),
        "zsh": part(made["zsh"], rf"^  {name or re.escape('*')}\)$", r";;$"),
        "fish": "".join(re.findall(rf"^.*'(?:not )?__fish_seen_subcommand_from {name + chr(39) if name else '.*'}.*\n", made["fish"], re.M)),
    }
    for option in {o for o in options(command)} - {"--help-list"}:
        count += 1
        bare = option.lstrip("-")
        found = {
            "man": "\\fB" + option.replace("-", "\\-") + "\\fR" in places["man"],
            "bash": option in bash or option + "=" in bash,
            "zsh": re.search(rf"'{option}[=\[]", places["zsh"]),
            "fish": re.search(rf" -[ls] {bare} ", places["fish"]),
        }
        missing += [f"{kind}: {words} {option}" for kind, there in found.items() if not there]
print("\n".join(missing) or f"{tool}: {len(commands) - 1} commands, {'many' if count > 20 else 'few'} options, none is missing")
sys.exit(1 if missing else 0)
