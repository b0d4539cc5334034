# fagen_add_kernels: generated kernels as a library. Used by this tree and by find_package(fagen).
#
#   fagen_add_kernels(NAME DIRECTORY generated/<kernel> [ARCHS 80 89 90 | NVRTC])
#   fagen_add_kernels(NAME SPEC file.fa                 [ARCHS 80 89 90 | NVRTC])
#
# makes a static library NAME, and fagen::kernels::<kernel> for it, that exports `const fagen_table fagen_table_<kernel>`
# and puts <<kernel>/table.h> on the include path. SPEC runs fagen when CMake configures (and again when the spec
# changes); a spec with several kernels makes one library of them all.
#
# fagen_add_ready_kernels(NAME [ARCHS 80 89 90 | NVRTC]): the kernel sets that fagen ships for use, as one library NAME.
# <ready/tables.h> has their tables in the order for fagen_query: fagen_ready_tables and FAGEN_READY_TABLE_COUNT. A row that none of ARCHS
# runs travels as source.
#
# ARCHS: nvcc compiles each row ahead of time for every listed compute capability that can run it, and to PTX of the
# lowest one that can run its text at all, for every other GPU. NVRTC: the sources travel in the library and are compiled at first use. With
# neither, FAGEN_KERNEL_ARCHS decides: a list, or empty for NVRTC.
set(FAGEN_KERNEL_ARCHS "" CACHE STRING "compute capabilities that kernels are compiled for ahead of time; empty: NVRTC at first use")
set(FAGEN_KERNELS_MODULE_DIR ${CMAKE_CURRENT_LIST_DIR} CACHE INTERNAL "")

function(fagen_add_kernels name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "NVRTC" "DIRECTORY;SPEC" "ARCHS")
  if((arg_DIRECTORY AND arg_SPEC) OR NOT (arg_DIRECTORY OR arg_SPEC))
    message(FATAL_ERROR "fagen_add_kernels(${name}): give either DIRECTORY or SPEC")
  endif()
  _fagen_archs(fagen_add_kernels)
  if(arg_SPEC)
    _fagen_run_compiler(fagen_add_kernels ${name} ${arg_SPEC} directories)
  else()
    get_filename_component(directories ${arg_DIRECTORY} ABSOLUTE)
  endif()
  _fagen_add_library(${name} "${directories}" "${arg_ARCHS}" TRUE)
endfunction()

function(fagen_add_ready_kernels name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "NVRTC" "" "ARCHS")
  _fagen_archs(fagen_add_ready_kernels)
  _fagen_ready(sets specs of_programs)
  _fagen_run_compiler(fagen_add_ready_kernels ${name} "${specs}" written ${of_programs})
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${name}.generated)
  set(includes "")
  set(tables "")
  foreach(set IN LISTS sets)
    string(APPEND includes "#include <${set}/table.h>\n")
    list(APPEND tables "&fagen_table_${set}")
  endforeach()
  list(LENGTH sets count)
  list(JOIN tables ",\n    " tables)
  configure_file(${FAGEN_KERNELS_MODULE_DIR}/ready.h.in ${output}/ready/tables.h @ONLY)
  list(TRANSFORM sets PREPEND ${output}/)
  _fagen_add_library(${name} "${sets}" "${arg_ARCHS}" FALSE)
endfunction()

# Checks what both functions share; without a word FAGEN_KERNEL_ARCHS decides.
macro(_fagen_archs function)
  get_property(fagen_languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  if(NOT CXX IN_LIST fagen_languages)
    message(FATAL_ERROR "${function}(${name}): kernels' tables are C++; add CXX to the project's languages: project(... LANGUAGES C CXX), or enable_language(CXX)")
  endif()
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${function}(${name}): unknown arguments ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(arg_NVRTC AND arg_ARCHS)
    message(FATAL_ERROR "${function}(${name}): give either ARCHS or NVRTC")
  endif()
  if(NOT arg_NVRTC AND NOT arg_ARCHS)
    set(arg_ARCHS ${FAGEN_KERNEL_ARCHS})
  endif()
endmacro()

# The ready sets in their order, the specs that they are compiled from, and the option that names the set of programs.
function(_fagen_ready sets specs of_programs)
  _fagen_find_tree(include folder)
  set(found "")
  set(files "")
  set(option "")
  file(STRINGS ${folder}/ready.txt lines REGEX "^[^#]")
  foreach(line IN LISTS lines)
    string(REGEX MATCH "^([^ ]+) +([^ ]+)$" ignored "${line}")
    set(set ${CMAKE_MATCH_1})
    set(file ${CMAKE_MATCH_2})
    list(APPEND found ${set})
    list(APPEND files ${folder}/${file})
    if(file MATCHES "[.]fair$")
      set(option --set=${set})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES found) # a set of programs has a line for each
  set(${of_programs} ${option} PARENT_SCOPE)
  set(${sets} ${found} PARENT_SCOPE)
  set(${specs} ${files} PARENT_SCOPE)
endfunction()

function(_fagen_add_library name directories archs needs_code)
  add_library(${name} STATIC)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON LINKER_LANGUAGE CXX
    UNITY_BUILD OFF) # each file has a kSource
  target_compile_features(${name} PRIVATE cxx_std_20)
  target_link_libraries(${name} PUBLIC fagen::runtime)
  foreach(directory IN LISTS directories)
    _fagen_add_kernel(${name} ${directory} "${archs}" ${needs_code})
  endforeach()
endfunction()

# Generates the specs' kernels below the build directory; `result` is the list of their directories. More arguments are the compiler's.
function(_fagen_run_compiler function name specs result)
  if(TARGET fagen::fagen)
    get_target_property(compiler fagen::fagen LOCATION)
  endif()
  if(NOT compiler OR NOT EXISTS ${compiler})
    message(FATAL_ERROR "${function}(${name}): a spec needs an installed fagen; without one fagen_add_kernels takes the DIRECTORY of generated kernels")
  endif()
  set(files "")
  foreach(spec IN LISTS specs)
    get_filename_component(spec ${spec} ABSOLUTE)
    list(APPEND files ${spec})
  endforeach()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${name}.generated)
  execute_process(COMMAND ${compiler} ${files} ${ARGN} -o ${output} RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${function}(${name}): fagen ${files} failed (${status})")
  endif()
  file(GLOB manifests ${output}/*/manifest.json)
  list(TRANSFORM manifests REPLACE "/manifest.json$" "")
  set(${result} ${manifests} PARENT_SCOPE)
endfunction()

# Says why a directory is no kernel set: it is not there, it holds sets, or nothing of fagen.
function(_fagen_no_manifest library directory)
  if(NOT IS_DIRECTORY ${directory})
    message(FATAL_ERROR "fagen_add_kernels(${library}): there is no directory ${directory}; fagen SPEC -o DIR writes DIR/<kernel>")
  endif()
  file(GLOB sets RELATIVE ${directory} ${directory}/*/manifest.json)
  list(TRANSFORM sets REPLACE "/manifest.json$" "")
  if(sets)
    list(GET sets 0 first)
    list(JOIN sets ", " sets)
    message(FATAL_ERROR "fagen_add_kernels(${library}): ${directory} holds kernel sets and is none; name one of them (${sets}): DIRECTORY ${directory}/${first}")
  endif()
  message(FATAL_ERROR "fagen_add_kernels(${library}): ${directory} has no manifest.json: it is not what fagen SPEC -o DIR wrote")
endfunction()

# Adds one kernel's table and code to the library.
function(_fagen_add_kernel library directory archs needs_code)
  set(manifest ${directory}/manifest.json)
  if(NOT EXISTS ${manifest})
    _fagen_no_manifest(${library} ${directory})
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${manifest})
  file(READ ${manifest} json)
  string(JSON unfinished ERROR_VARIABLE ignored GET "${json}" unfinished)
  if(unfinished)
    message(FATAL_ERROR "fagen_add_kernels(${library}): fagen was interrupted while it wrote ${directory}; run it again")
  endif()
  string(JSON kernel GET "${json}" kernel)
  string(JSON rows LENGTH "${json}" rows)
  set(work ${CMAKE_CURRENT_BINARY_DIR}/${library}.code/${kernel})
  file(MAKE_DIRECTORY ${work})

  target_sources(${library} PRIVATE ${directory}/table.cpp)
  get_filename_component(parent ${directory} DIRECTORY)
  target_include_directories(${library} PUBLIC $<BUILD_INTERFACE:${parent}>)
  if(NOT TARGET fagen::kernels::${kernel})
    add_library(fagen::kernels::${kernel} ALIAS ${library})
  endif()
  math(EXPR last "${rows} - 1")
  foreach(index RANGE ${last})
    string(JSON row GET "${json}" rows ${index})
    _fagen_add_row(${library} ${directory} ${work} "${row}" "${archs}" ${needs_code})
  endforeach()
endfunction()

# Compiles or embeds the code of one row. `needs_code`: refuses a row that none of the architectures runs.
function(_fagen_add_row library directory work row archs needs_code)
  foreach(key variant target sm first_sm last_sm exact source)
    string(JSON ${key} GET "${row}" ${key})
  endforeach()
  set(source_file ${directory}/${source})
  set(symbol fagen_code_${variant}_${target})
  set(binaries "")
  set(files "")
  if(archs)
    _fagen_row_targets("${archs}" ${target} ${first_sm} ${last_sm} ${exact} targets)
    if(NOT targets AND needs_code)
      message(FATAL_ERROR "fagen_add_kernels(${library}): none of the architectures ${archs} runs ${variant} (${target})")
    endif()
    _fagen_find_nvcc(nvcc include)
    foreach(one IN LISTS targets)
      string(REPLACE ":" ";" one ${one}) # cubin:sm_89:89:0
      list(GET one 0 kind)
      list(GET one 1 arch)
      list(GET one 2 capability)
      list(GET one 3 specific)
      set(binary ${work}/${variant}.${target}.${arch}.${kind})
      add_custom_command(
        OUTPUT ${binary}
        COMMAND ${nvcc} -${kind} -arch=${arch} -std=c++17 --expt-relaxed-constexpr -I${include} -o ${binary} ${source_file}
        DEPENDS ${source_file}
        COMMENT "Compiling ${variant} (${target}) to ${kind} for ${arch}"
        VERBATIM)
      list(APPEND binaries ${kind}:${capability}:${specific}:${binary})
      list(APPEND files ${binary})
    endforeach()
  endif()
  set(output ${work}/${variant}.${target}.cpp)
  set(script ${FAGEN_KERNELS_MODULE_DIR}/EmbedCode.cmake)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DSYMBOL=${symbol} -DNAME=${source} -DSOURCE=${source_file}
            "-DBINARIES=${binaries}" -P ${script}
    DEPENDS ${source_file} ${files} ${script}
    VERBATIM)
  target_sources(${library} PRIVATE ${output})
endfunction()

# What to compile a row for, as kind:arch:capability:specific. Machine code for each architecture that runs its text,
# and PTX of the lowest that does; an architecture-specific row for its own target only, and no PTX.
function(_fagen_row_targets archs target first_sm last_sm exact result)
  set(targets "")
  list(TRANSFORM archs REPLACE "[af]$" "")
  list(REMOVE_DUPLICATES archs)
  list(SORT archs COMPARE NATURAL)
  foreach(arch IN LISTS archs)
    if(exact)
      if(arch EQUAL first_sm)
        list(APPEND targets cubin:${target}:${arch}:1)
      endif()
    elseif(NOT arch LESS first_sm AND (last_sm EQUAL 0 OR NOT arch GREATER last_sm))
      if(NOT targets)
        list(APPEND targets ptx:compute_${first_sm}:${first_sm}:0)
      endif()
      list(APPEND targets cubin:sm_${arch}:${arch}:0)
    endif()
  endforeach()
  set(${result} ${targets} PARENT_SCOPE)
endfunction()

# nvcc, and the directory that holds fagen/device.
function(_fagen_find_nvcc nvcc include)
  find_program(FAGEN_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
  if(NOT FAGEN_NVCC)
    message(FATAL_ERROR "kernels ahead of time need nvcc: set FAGEN_NVCC, or use NVRTC")
  endif()
  _fagen_find_tree(headers specs)
  set(${nvcc} ${FAGEN_NVCC} PARENT_SCOPE)
  set(${include} ${headers} PARENT_SCOPE)
endfunction()

# The folders of headers and of shipped specs: of the installed package, or of this tree.
function(_fagen_find_tree include specs)
  if(DEFINED FAGEN_INCLUDE_DIR)
    set(${include} ${FAGEN_INCLUDE_DIR} PARENT_SCOPE)
    set(${specs} ${FAGEN_SPECS_DIR} PARENT_SCOPE)
  else()
    get_filename_component(tree ${FAGEN_KERNELS_MODULE_DIR} DIRECTORY)
    set(${include} ${tree}/runtime/include PARENT_SCOPE)
    set(${specs} ${tree}/specs PARENT_SCOPE)
  endif()
endfunction()
