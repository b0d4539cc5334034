# fagen: debian/copyright in its machine-readable form (DEP-5), from LICENSE and THIRD-PARTY-LICENSES.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# fagen_debian_copyright(OWN OTHERS OUTPUT): OWN is fagen's licence, whose Apache part is named and not repeated: Debian has it in
# /usr/share/common-licenses. OTHERS has a section for each third party, its name between lines of '='.

# Text as a field of DEP-5 has it: indented, empty lines as a dot.
function(_fagen_field result text)
  string(STRIP "${text}" text)
  string(REGEX REPLACE "[ \t]+\n" "\n" text "${text}")
  string(REPLACE "\n" "\n " text " ${text}")
  string(REPLACE "\n \n" "\n .\n" text "${text}")
  string(REPLACE "\n \n" "\n .\n" text "${text}")
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

# What stands of a section about the copyright's holders.
function(_fagen_holders result text)
  string(REGEX MATCHALL "[Cc]opyright (\\([Cc]\\)|©)[^\n;]*" lines "${text}")
  list(REMOVE_DUPLICATES lines)
  list(JOIN lines "\n " lines)
  if(NOT lines)
    set(lines "see the text of the licence")
  endif()
  set(${result} "${lines}" PARENT_SCOPE)
endfunction()

function(fagen_debian_copyright own others output)
  file(READ ${own} text)
  string(FIND "${text}" "---- LLVM Exceptions" begin)
  if(begin EQUAL -1)
    message(FATAL_ERROR "${own} has no '---- LLVM Exceptions'")
  endif()
  string(SUBSTRING "${text}" ${begin} -1 text)
  _fagen_field(exceptions "${text}")
  set(written "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: fagen
Comment: After fagen's own licence come those of third parties whose code is inside the binaries.

Files: *\nCopyright: The fagen authors\nLicense: Apache-2.0-with-LLVM-exception
 The Apache License, version 2.0, which is in /usr/share/common-licenses/Apache-2.0 on Debian systems, with what follows.
 .\n${exceptions}\n")
  file(READ ${others} text)
  set(line "\n====================================================================================================\n")
  string(FIND "${text}" "${line}" next)
  while(NOT next EQUAL -1)
    string(LENGTH "${line}" length)
    math(EXPR next "${next} + ${length}")
    string(SUBSTRING "${text}" ${next} -1 text)
    string(FIND "${text}" "${line}" next) # after the name
    string(SUBSTRING "${text}" 0 ${next} name)
    math(EXPR next "${next} + ${length}")
    string(SUBSTRING "${text}" ${next} -1 text)
    string(FIND "${text}" "${line}" next) # after the section
    string(SUBSTRING "${text}" 0 ${next} section)
    _fagen_holders(holders "${section}")
    _fagen_field(field "${section}")
    string(REGEX REPLACE "[^A-Za-z0-9.+]+" "-" short "${name}")
    string(REGEX REPLACE "^-|-$" "" short "${short}")
    string(APPEND written "\nFiles: ${short}/*\nCopyright: ${holders}\nLicense: ${short}\n${field}\nComment: ${name}\n")
  endwhile()
  file(WRITE ${output} "${written}")
endfunction()
