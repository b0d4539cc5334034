# Writes a C++ file that carries text files as strings: cmake -DROOT=dir -DOUTPUT=file -DHEADERS=a;b -DDECLARED=header
# -DNAME=kTexts -P EmbedHeaders.cmake
# HEADERS are paths below ROOT; a file's name in the table is its path there, as kernels include it. DECLARED declares
# fagen::EmbeddedHeader, the table fagen::<NAME>s and the number of its entries, fagen::<NAME>Count.
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
// fagen: texts that are part of a program. Made by cmake/EmbedHeaders.cmake from @ROOT@.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "@DECLARED@"

const fagen::EmbeddedHeader fagen::@NAME@s[] = {
@rows@    {nullptr, nullptr}};
const unsigned fagen::@NAME@Count = @count@;
]])
