# fagen: fails unless two specs are the same but for white space: same-tokens.py A B
import sys

a, b = ("".join(open(name, encoding="utf-8").read().split()) for name in sys.argv[1:])
sys.exit(0 if a == b else f"{sys.argv[1]} and {sys.argv[2]} differ in more than white space")
