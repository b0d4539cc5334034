# fagen_gradients(FOLDER VARIABLE): programs of the gradients of attention, one for each type, head dim and kind of scores, all of
# one text. VARIABLE is the list of their files.
function(fagen_gradients folder variable)
  set(texts ${PROJECT_SOURCE_DIR}/specs)
  set(files "")
  foreach(TYPE IN ITEMS f16 bf16)
    foreach(HEAD_DIM IN ITEMS 64 96 128 192 256)
      foreach(kind IN ITEMS none window softcap)
        _fagen_gradients_of(${kind} ${HEAD_DIM})
        set(NAME backward_${TYPE}_d${HEAD_DIM}${SUFFIX})
        configure_file(${texts}/${keys} ${folder}/keys/${NAME}.fair @ONLY)
        file(READ ${folder}/keys/${NAME}.fair KEYS)
        configure_file(${texts}/backward.fair.in ${folder}/${NAME}.fair @ONLY)
        list(APPEND files ${folder}/${NAME}.fair)
      endforeach()
    endforeach()
  endforeach()
  set(${variable} ${files} PARENT_SCOPE)
endfunction()

# What the texts need of a kind of scores and a head dim, in its caller's variables. As many rows of Q, and as many tiles of them on
# the way, as registers and shared memory allow; beyond 128 columns dK has no place next to dV.
macro(_fagen_gradients_of kind head_dim)
  set(keys backward_keys.fair.in)
  set(TILE_ROWS 64)
  set(STAGES 2)
  if(${head_dim} GREATER 128)
    set(keys backward_keys_wide.fair.in)
  endif()
  if(${head_dim} EQUAL 256)
    set(STAGES 1)
  endif()
  set(MASKED 1)
  set(SUFFIX _${kind})
  if(${kind} STREQUAL softcap)
    # s holds the tangent, then P times its derivative.
    set(PARAMS "    param scale_of_tanh : f32\n")
    set(FRAGMENTS "    fragment %p : f32[16 x kTileRows]\n")
    set(SCORES "        map %s {value = tanh(%s * scale_of_tanh)}\n")
    string(CONCAT PROBABILITIES
      "        map %p, %s, %lses[j] {value = exp2(%s * scale_log2 - %lses)}\n"
      "        convert %p16, %p\n"
      "        map %s, %p {value = %p * max(1.0 - %s * %s, 0.0)}\n")
  else()
    set(PARAMS "")
    set(FRAGMENTS "")
    set(SCORES "")
    string(CONCAT PROBABILITIES
      "        map %s, %lses[j] {value = exp2(%s * scale_log2 - %lses)}\n"
      "        convert %p16, %s\n")
    if(${head_dim} EQUAL 64)
      set(TILE_ROWS 128)
    endif()
    if(${kind} STREQUAL none)
      set(MASKED 0)
      set(SUFFIX "")
    endif()
  endif()
endmacro()
