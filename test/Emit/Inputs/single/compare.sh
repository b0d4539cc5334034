# compare.sh SOURCE COMPARE.C SPEC...: compares the header of --emit=single of each spec with libfagen, in the current directory.
set -e
source=$1 program=$2
shift 2
for spec; do
  fagen "$source/specs/$spec.fa" -o "set-$spec" > "$spec.log"
  fagen "$source/specs/$spec.fa" --emit=single -o attn
  cc -std=c99 -O1 -I . -I "$source/runtime/include" "$program" prefix/lib*/libfagen.so.1 -lm -o "$spec"
  LD_LIBRARY_PATH=$(dirname prefix/lib*/libfagen.so.1) "./$spec" "set-$spec"/*
done
