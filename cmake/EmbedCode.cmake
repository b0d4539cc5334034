# Writes a C++ file that defines the fagen_code of one row:
#   cmake -DOUTPUT=file -DSYMBOL=name -DNAME=source_name -DSOURCE=file -DBINARIES=kind:capability:specific:file;... -P EmbedCode.cmake
# Without binaries the source is carried, for NVRTC; with them it is not.

# "0x7f,0x45,..." of a file, 16 bytes a line.
function(hex_of file result)
  file(READ ${file} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}")
  string(REGEX REPLACE "(................................................................................)" "\\1\n" hex "${hex}")
  set(${result} "${hex}" PARENT_SCOPE)
endfunction()

set(definitions "")
set(rows "")
set(index 0)
foreach(binary IN LISTS BINARIES)
  string(REGEX MATCH "^([a-z]+):([0-9]+):([01]):(.*)$" matched "${binary}")
  set(kind ${CMAKE_MATCH_1})
  set(capability ${CMAKE_MATCH_2})
  set(specific ${CMAKE_MATCH_3})
  hex_of(${CMAKE_MATCH_4} hex)
  if(kind STREQUAL "ptx")
    string(APPEND hex "0x00") # PTX is text, and ends as C text does
  endif()
  string(TOUPPER ${kind} upper)
  string(APPEND definitions "alignas(16) const unsigned char kBinary${index}[] = {\n${hex}};\n")
  string(APPEND rows "    {FAGEN_BINARY_${upper}, ${capability}, ${specific}, 0, kBinary${index}, sizeof(kBinary${index})},\n")
  math(EXPR index "${index} + 1")
endforeach()

if(index EQUAL 0)
  file(READ ${SOURCE} text)
  string(FIND "${text}" ")fagen_text\"" clash)
  if(NOT clash EQUAL -1)
    message(FATAL_ERROR "${SOURCE} contains the delimiter of the string that would hold it")
  endif()
  set(definitions "const char kSource[] = R\"fagen_text(${text})fagen_text\";\n")
  set(code "{kSource, \"${NAME}\", nullptr, 0}")
else()
  string(APPEND definitions "const fagen_binary kBinaries[] = {\n${rows}};\n")
  set(code "{nullptr, \"${NAME}\", kBinaries, ${index}}")
endif()
file(WRITE ${OUTPUT} "// Made by fagen_add_kernels from ${NAME}.
#include <fagen/table.h>

namespace {
${definitions}} // namespace

extern \"C\" {
extern const fagen_code ${SYMBOL};
}
const fagen_code ${SYMBOL} = ${code};
")
