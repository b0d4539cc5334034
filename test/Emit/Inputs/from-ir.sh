# fagen: from-ir.sh SOURCE: of each kernel under SOURCE/generated, the text that fagen-opt makes of its IR. Says `same` of each.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
cd "$1" || exit
for set in h200_fp16:h200 l4_bf16:l4_bf16 l4_fp16:l4_fp16 l4_fp16_scalar:l4_fp16_scalar l4_fp16_wmma:l4_fp16_wmma; do
  for file in "generated/${set#*:}"/*/*.cu; do
    fagen "specs/${set%:*}.fa" --emit=ir --variant="$(basename "$file" .cu)" | fagen-opt - --emit=cuda | cmp - "$file" && echo same
  done
done
