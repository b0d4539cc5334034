# fagen_gradients(FOLDER VARIABLE): programs of the gradients of attention, one for each type, head dim and kind of scores, all of
# one text. VARIABLE is the list of their files. Kinds that have kernels of few head dims forward have as few here.
function(fagen_gradients folder variable)
  set(texts ${PROJECT_SOURCE_DIR}/specs)
  set(files "")
  foreach(kind IN ITEMS none causal window softcap alibi rows bias)
    set(head_dims 64 96 128 192 256)
    if(kind STREQUAL causal) # of 128 rows in registers a window's left bound costs some 6 % of a causal mask's time
      set(head_dims 64)
    elseif(kind MATCHES "alibi|rows|bias")
      set(head_dims 64 128)
    endif()
    foreach(HEAD_DIM IN LISTS head_dims)
      _fagen_gradients_shape(${kind} ${HEAD_DIM})
      _fagen_gradients_scores(${kind})
      foreach(TYPE IN ITEMS f16 bf16)
        set(NAME backward_${TYPE}_d${HEAD_DIM}_${kind})
        string(REPLACE _none "" NAME ${NAME})
        configure_file(${texts}/${keys} ${folder}/keys/${NAME}.fair @ONLY)
        file(READ ${folder}/keys/${NAME}.fair KEYS)
        configure_file(${texts}/backward.fair.in ${folder}/${NAME}.fair @ONLY)
        list(APPEND files ${folder}/${NAME}.fair)
        if(NOT kind MATCHES "causal|alibi|rows")
          _fagen_gradients_by_sync(${folder} ${TYPE} ${HEAD_DIM} ${kind} sm_80)
          list(APPEND files ${by_sync})
          if(HEAD_DIM GREATER 96)
            _fagen_gradients_by_sync(${folder} ${TYPE} ${HEAD_DIM} ${kind} sm_86)
            list(APPEND files ${by_sync})
          endif()
        endif()
      endforeach()
    endforeach()
  endforeach()
  set(${variable} ${files} PARENT_SCOPE)
endfunction()

# As many rows of Q, and as many tiles of them on the way, as registers and shared memory allow, in the caller's variables; beyond 128
# columns, and with what reads of a bias take, dK has no place next to dV.
macro(_fagen_gradients_shape kind head_dim)
  set(keys backward_keys.fair.in)
  set(FULL %full)
  set(TILE_ROWS 64)
  set(STAGES 2)
  if(${head_dim} GREATER 128 OR "${kind}" STREQUAL bias)
    set(keys backward_keys_wide.fair.in)
    set(FULL %qfull)
  elseif(${head_dim} EQUAL 64 AND NOT ${kind} STREQUAL softcap)
    set(TILE_ROWS 128)
    set(STAGES 3)
  endif()
  if(${head_dim} EQUAL 256)
    set(STAGES 1)
  endif()
endmacro()

# What the texts have of a kind of scores, in the caller's variables.
macro(_fagen_gradients_scores kind)
  set(MASKED 1)
  if("${kind}" MATCHES "none|bias")
    set(MASKED 0)
  endif()
  foreach(name IN ITEMS PARAMS FRAGMENTS SCORES TENSORS SHARED COPIES BOUNDS_OF_KEYS BOUNDS_OF_ROWS)
    set(${name} "")
  endforeach()
  set(row "(first + (j < tiles ? j : j % max(tiles, 1))) * kTileRows") # of the step's tile
  string(CONCAT ROWS_OF_KEYS
    "    let first = min(max(floor_div(n * kTileKeys - (SKV - SQ) - right, kRows), 0) * floor_div(kRows, kTileRows), all) * kMasked\n"
    "    let end = min(max((floor_div(n * kTileKeys + (kTileKeys - 1) - (SKV - SQ) + left, kRows) + 1) * floor_div(kRows, kTileRows), all * (1 - kMasked)), all)\n")
  set(MASKED_TILES "    let masked = min(max(ceil_div(n * kTileKeys + (kTileKeys - 1) - (SKV - SQ) - right, kTileRows) - first, left < SKV ? 16384 : 0), tiles) * kMasked\n")
  set(MASK "        map %s {value = q <= k + (SKV - SQ) + right && q >= k + (SKV - SQ) - left ? %s : -inf, row = n * kTileKeys, key = ${row}, when = j % max(tiles, 1) < masked}\n")
  string(CONCAT PROBABILITIES
    "        map %s, %lses[j] {value = exp2(%s * scale_log2 - %lses)}\n"
    "        convert %p16, %s\n")
  string(CONCAT KEYS_OF_ROWS
    "    let begin = min(max(floor_div(m * kRows + (SKV - SQ) - left, kTileKeys), 0), all) * kMasked\n"
    "    let end = min(max(floor_div(m * kRows + (kRows - 1) + (SKV - SQ) + right, kTileKeys) + 1, all * (1 - kMasked)), all)\n")
  if("${kind}" STREQUAL causal)
    string(CONCAT ROWS_OF_KEYS
      "    let first = min(max(floor_div(n * kTileKeys - (SKV - SQ) - right, kRows), 0) * floor_div(kRows, kTileRows), all)\n"
      "    let end = all\n")
    set(MASKED_TILES "    let masked = min(max(ceil_div(n * kTileKeys + (kTileKeys - 1) - (SKV - SQ) - right, kTileRows) - first, 0), tiles)\n")
    set(MASK "        map %s {value = q <= k + (SKV - SQ) + right ? %s : -inf, row = n * kTileKeys, key = ${row}, when = j % max(tiles, 1) < masked}\n")
  elseif("${kind}" STREQUAL softcap)
    # s holds the tangent, then P times its derivative.
    set(PARAMS "    param scale_of_tanh : f32\n")
    set(FRAGMENTS "    fragment %p : f32[16 x kTileRows]\n")
    set(SCORES "        map %s {value = tanh(%s * scale_of_tanh)}\n")
    string(CONCAT PROBABILITIES
      "        map %p, %s, %lses[j] {value = exp2(%s * scale_log2 - %lses)}\n"
      "        convert %p16, %p\n"
      "        map %s, %p {value = %p * max(1.0 - %s * %s, 0.0)}\n")
  elseif("${kind}" STREQUAL alibi)
    # Row h of the slopes, times log2(e), is 128 times the head's.
    string(CONCAT TENSORS
      "    global %slope : f32[HQ, kRows] param slope\n"
      "    view %slope_of : f32[HQ, kRows] = (r, c) -> %slope[r, c]\n")
    set(SHARED "    shared %slopes : f32[1 x kTileRows] stages kStages\n")
    set(COPIES "        copy_issue %slopes[j], %slope_of, ${FULL}[j] {kind = \"bulk\", row = h * group + (j < tiles ? 0 : floor_div(j, max(tiles, 1))), column = 0}\n")
    string(CONCAT PROBABILITIES
      "        map %s, %lses[j], %slopes[j] {value = exp2(%s * scale_log2 + %slopes * f32(q - (k + (SKV - SQ))) - %lses), row = n * kTileKeys, key = ${row}}\n"
      "        convert %p16, %s\n")
  elseif("${kind}" STREQUAL bias)
    # A number for each row and key, -inf where the row does not see the key; a row of the scores is a key.
    set(MASK "")
    string(CONCAT TENSORS "    global %bias : f32[B, HQ, SQ, SKV] param bias strided\n")
    set(of_head "max(min(h * group + (j < tiles ? 0 : floor_div(j, max(tiles, 1))), HQ - 1), 0)")
    string(CONCAT PROBABILITIES
      "        map %s, %lses[j] {value = exp2(%s * scale_log2 + %bias[b, ${of_head}, max(min(k, SQ - 1), 0), min(q, SKV - 1)] * 1.4426950408889634 - %lses), row = n * kTileKeys, key = ${row}}\n"
      "        convert %p16, %s\n")
  elseif("${kind}" STREQUAL rows)
    # Of each row the first and the last key; of tiles of 128 rows the tiles of 128 keys that some row sees, and the other way round.
    string(CONCAT TENSORS
      "    global %row_begin : u32[B, ceil_div(SKV, 128)] param row_begin in [0, 8192] constant\n"
      "    global %row_end : u32[B, ceil_div(SKV, 128)] param row_end in [0, 8192] constant\n"
      "    global %firsts : f32[B, SQ] param firsts strided\n"
      "    global %lasts : f32[B, SQ] param lasts strided\n"
      "    view %firsts_of : f32[B, SQ] = (r, c) -> %firsts[r, c]\n"
      "    view %lasts_of : f32[B, SQ] = (r, c) -> %lasts[r, c]\n")
    string(CONCAT SHARED
      "    shared %firstss : f32[1 x kTileRows] stages kStages\n"
      "    shared %lastss : f32[1 x kTileRows] stages kStages\n")
    string(CONCAT COPIES
      "        copy_issue %firstss[j], %firsts_of, ${FULL}[j] {kind = \"bulk\", row = b, column = ${row}}\n"
      "        copy_issue %lastss[j], %lasts_of, ${FULL}[j] {kind = \"bulk\", row = b, column = ${row}}\n")
    string(CONCAT BOUNDS_OF_KEYS
      "    global %row_begin : u32[B, ceil_div(SKV, 128)] param row_begin in [0, 8192] constant\n"
      "    global %row_end : u32[B, ceil_div(SKV, 128)] param row_end in [0, 8192] constant\n")
    string(CONCAT BOUNDS_OF_ROWS
      "    global %key_begin : u32[B, ceil_div(SQ, kRows)] param key_begin in [0, 8192] constant\n"
      "    global %key_end : u32[B, ceil_div(SQ, kRows)] param key_end in [0, 8192] constant\n")
    string(CONCAT ROWS_OF_KEYS
      "    let row_tile in [0, 8192] = %row_begin[b, n]\n"
      "    let row_tiles in [0, 8192] = %row_end[b, n]\n"
      "    let first = min(row_tile * floor_div(kRows, kTileRows), all)\n"
      "    let end = min(row_tiles * floor_div(kRows, kTileRows), all)\n")
    set(MASKED_TILES "")
    set(MASK "        map %s, %firstss[j], %lastss[j] {value = f32(q) >= %firstss && f32(q) <= %lastss ? %s : -inf, row = n * kTileKeys, key = ${row}}\n")
    string(CONCAT KEYS_OF_ROWS
      "    let key_tile in [0, 8192] = %key_begin[b, m]\n"
      "    let key_tiles in [0, 8192] = %key_end[b, m]\n"
      "    let begin = min(key_tile * 2, all)\n"
      "    let end = min(key_tiles * 2, all)\n")
  endif()
endmacro()

# by_sync is then the program by mma_sync. Of wide head dims there are two: tiles take up to 163 KiB of shared memory on sm_80, where that
# leaves an SM eight warps, and up to 99 KiB on sm_86, 89 and 120.
function(_fagen_gradients_by_sync folder type head_dim kind TARGET)
  # Which head of Q, which of the group's, and which tile of rows step j of a loop works on.
  set(HEAD "min(h * group + floor_div(j, max(tiles, 1)), HQ - 1)")
  set(TURN "min(floor_div(j, max(tiles, 1)), ceil_div(HQ, HKV) - 1)")
  set(TILE "min(first + j % max(tiles, 1), all)")
  set(KEY_GRID "b in B, h in HKV, n in ceil_div(SKV, kTileKeys)")
  set(ROW_GRID "b in B, h in HQ, m in ceil_div(SQ, kRows)")
  set(ROW_LET "")
  if(MASKED)
    set(KEY_GRID "n in ceil_div(SKV, kTileKeys), b in B, h in HKV")
    set(ROW_GRID "i in ceil_div(SQ, kRows), b in B, h in HQ")
    set(ROW_LET "    let m = ceil_div(SQ, kRows) - (i + 1)\n")
  endif()
  set(TILE_ROWS 32)
  set(STAGES 2)
  set(KEY_WARPS 4)
  set(WARP_KEYS 32)
  set(SUM_WARPS 4)
  set(SUM_ROWS 32)
  set(SUM_TILE 64)
  set(SUM_STAGES 2)
  if(${head_dim} GREATER 128)
    set(WARP_KEYS 16)
    set(SUM_WARPS 8)
    set(SUM_ROWS 16)
    set(SUM_TILE 32)
    set(SUM_STAGES 3)
  endif()
  if(${head_dim} EQUAL 256)
    set(STAGES 1)
  endif()
  if("${kind}" STREQUAL bias) # its reads take registers
    set(WARP_KEYS 16)
  endif()
  if(${head_dim} GREATER 96 AND ${TARGET} STREQUAL sm_80)
    set(KEY_WARPS 8)
  endif()
  math(EXPR ROW_WARPS "${TILE_ROWS} / 16")
  math(EXPR ROW_THREADS "${TILE_ROWS} * 2")
  math(EXPR KEY_THREADS "${KEY_WARPS} * 32")
  math(EXPR SUM_THREADS "${SUM_WARPS} * 32")
  math(EXPR TILE_KEYS "${KEY_WARPS} * ${WARP_KEYS}")
  string(REPLACE "16 x kTileRows" "${WARP_KEYS} x kTileRows" FRAGMENTS "${FRAGMENTS}")
  string(REPLACE "${row}" "${TILE} * kTileRows" PROBABILITIES "${PROBABILITIES}")
  set(IS_DK_IN_PLACE FALSE)
  set(RESULTS dV)
  foreach(part IN ITEMS GLOBAL VIEW FRAGMENTS CLEAR SUM STORE)
    set(DK_${part} "")
  endforeach()
  if(${head_dim} EQUAL 64)
    set(IS_DK_IN_PLACE TRUE)
    set(RESULTS "dV and dK")
    set(DK_GLOBAL "    global %dk : ${type}[B, HKV, SKV, kHeadDim] param dk strided\n")
    set(DK_VIEW "    view %dk_of : ${type}[SKV, kHeadDim] = (r, c) -> %dk[b, h, r, c]\n")
    string(CONCAT DK_FRAGMENTS "    fragment %ds16 : ${type}[${WARP_KEYS} x kTileRows]\n" "    fragment %dka : f32[${WARP_KEYS} x kHeadDim]\n")
    set(DK_CLEAR "      map %dka {value = 0.0}\n")
    string(CONCAT DK_SUM "        convert %ds16, %dp\n" "        mma %dka, %ds16, %qs[j] {form = \"ab\", accumulate = 1}\n")
    string(CONCAT DK_STORE "      map %dka {value = %dka * scale}\n" "      store %dk_of, %dka {row = n * kTileKeys}\n")
  endif()
  set(texts ${PROJECT_SOURCE_DIR}/specs)
  string(REPLACE _none "" NAME backward_sync_${type}_d${head_dim}_${kind})
  set(DK_KERNEL "")
  if(NOT IS_DK_IN_PLACE)
    configure_file(${texts}/backward_sync_dk.fair.in ${folder}/keys/${NAME}.${TARGET}.fair @ONLY)
    file(READ ${folder}/keys/${NAME}.${TARGET}.fair DK_KERNEL)
  endif()
  configure_file(${texts}/backward_sync.fair.in ${folder}/${NAME}.${TARGET}.fair @ONLY)
  set(by_sync ${folder}/${NAME}.${TARGET}.fair PARENT_SCOPE)
endfunction()
