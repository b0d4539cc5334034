# fagen: what bash completes for words, the last of which is being typed: complete.sh TOOL WORD...
# shellcheck shell=sh
tool=$1
function=_$(echo "$tool" | tr - _)
bash -c "$("$tool" --generate=bash)"'
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
"$0"
echo "${COMPREPLY[*]}"' "$function" "$@"
