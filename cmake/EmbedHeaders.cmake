# Writes a C++ file that carries header files as strings: cmake -DROOT=dir -DOUTPUT=file -DHEADERS=a;b -P EmbedHeaders.cmake
# HEADERS are paths below ROOT; a header's name in the table is its path there, as kernels include it.
list(SORT HEADERS)
set(rows "")
foreach(header IN LISTS HEADERS)
  file(READ ${ROOT}/${header} text)
  string(FIND "${text}" ")fagen_text\"" clash)
  if(NOT clash EQUAL -1)
    message(FATAL_ERROR "${header} contains the delimiter of the string that would hold it")
  endif()
  string(APPEND rows "    {\"${header}\", R\"fagen_text(${text})fagen_text\"},\n")
endforeach()
list(LENGTH HEADERS count)
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[
// fagen: the device headers, for NVRTC. Made by cmake/EmbedHeaders.cmake from runtime/include/fagen/device.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compile/nvrtc.h"

const fagen::EmbeddedHeader fagen::kEmbeddedHeaders[] = {
@rows@    {nullptr, nullptr}};
const unsigned fagen::kEmbeddedHeaderCount = @count@;
]])
