# Shared build rules: language level, warnings, and the flavours of library.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 99)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

# Ten files of a target are compiled as one: more than half of a file's time goes to its headers. So names that are
# local to files differ within a target; -D CMAKE_UNITY_BUILD=OFF, as the debug preset has it, finds headers that a file
# forgets.
if(NOT DEFINED CMAKE_UNITY_BUILD)
  set(CMAKE_UNITY_BUILD ON)
endif()
set(CMAKE_UNITY_BUILD_BATCH_SIZE 10)

find_program(FAGEN_CCACHE ccache)
if(FAGEN_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${FAGEN_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${FAGEN_CCACHE})
endif()

# Ahead-of-time kernels and some tests want nvcc; everything else does without.
find_program(FAGEN_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)

add_library(fagen_warnings INTERFACE)
target_compile_options(fagen_warnings INTERFACE -Wall -Wextra $<$<BOOL:${FAGEN_WARNINGS_ARE_ERRORS}>:-Werror>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>) # false alarms of GCC 12 on "text" + std::string

# fagen_fmt: fmt, statically. Fmt.cpp knows what fmt 9 leaves to its library; another version is used as headers only.
if(FAGEN_BUILD_COMPILER OR FAGEN_BUILD_TOOLS)
  find_package(fmt 9 REQUIRED)
  if(fmt_VERSION VERSION_LESS 10)
    add_library(fagen_fmt STATIC ${CMAKE_CURRENT_LIST_DIR}/Fmt.cpp)
    target_include_directories(fagen_fmt SYSTEM PUBLIC
      $<TARGET_PROPERTY:fmt::fmt-header-only,INTERFACE_INCLUDE_DIRECTORIES>)
  else()
    add_library(fagen_fmt INTERFACE)
    target_link_libraries(fagen_fmt INTERFACE fmt::fmt-header-only)
  endif()
endif()

# Flags, headers and static libraries of everything that links LLVM: no exceptions, no RTTI.
function(fagen_compiler_flags target)
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>)
  target_include_directories(${target} SYSTEM PUBLIC $<BUILD_INTERFACE:${LLVM_INCLUDE_DIRS}>)
  target_compile_definitions(${target} PUBLIC ${LLVM_DEFINITIONS_LIST})
  target_compile_options(${target} PRIVATE -fno-exceptions -fno-rtti)
  target_link_libraries(${target} PRIVATE fagen_warnings)
  if(TARGET fagen_generated) # all but fagen-tblgen itself
    add_dependencies(${target} fagen_generated)
  endif()
endfunction()

# fagen_compiler_library(name sources...): one static library of the compiler.
function(fagen_compiler_library name)
  add_library(${name} STATIC ${ARGN})
  fagen_compiler_flags(${name})
  target_link_libraries(${name} PUBLIC LLVMSupport fagen_fmt)
endfunction()

# fagen_compiler_tool(name sources...): one executable of the compiler.
function(fagen_compiler_tool name)
  add_executable(${name} ${ARGN})
  fagen_compiler_flags(${name})
  target_link_libraries(${name} PRIVATE LLVMSupport fagen_fmt)
endfunction()

# fagen_old_glibc(target): a library or program that runs with glibc 2.28 (RHEL 8, Debian 10, Ubuntu 20.04), whatever glibc is
# here. libgcc_s is shared: the static unwinder wants the newest glibc.
option(FAGEN_OLD_GLIBC "what wheels ship asks for no symbol that is later than GLIBC_2.28 (x86-64, glibc, GCC)" OFF)
if(FAGEN_OLD_GLIBC)
  enable_language(ASM)
  set(glibc ${PROJECT_SOURCE_DIR}/cmake/glibc)
  add_library(fagen_glibc OBJECT ${glibc}/OldGlibc.c ${glibc}/OldSymbols.S)
  target_compile_options(fagen_glibc PRIVATE $<$<COMPILE_LANGUAGE:C>:-std=gnu99 -Wall -Wextra -ffunction-sections -fdata-sections>)
endif()
function(fagen_old_glibc target)
  target_link_options(${target} PRIVATE -static-libstdc++ -shared-libgcc -Wl,--gc-sections)
  if(FAGEN_OLD_GLIBC)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:fagen_glibc>)
    target_link_options(${target} PRIVATE -Wl,--no-as-needed -l:libdl.so.2 -l:libpthread.so.0 -Wl,--as-needed)
  endif()
endfunction()
