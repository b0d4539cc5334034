# fagen: what Debian's policy asks of a package's files: compressed manual pages, a changelog. CPack runs it before it packs.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC) # SOURCE_DATE_EPOCH decides where it is set
file(WRITE ${CPACK_TOPLEVEL_DIRECTORY}/changelog "fagen (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium

  * Version ${CPACK_PACKAGE_VERSION}.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  set(share ${CPACK_TEMPORARY_DIRECTORY}/${component}/usr/share)
  file(GLOB documents ${share}/doc/*)
  foreach(document IN LISTS documents)
    file(COPY ${CPACK_TOPLEVEL_DIRECTORY}/changelog DESTINATION ${document})
  endforeach()
  file(GLOB texts ${share}/doc/*/changelog ${share}/man/man1/*.1)
  if(texts)
    execute_process(COMMAND gzip -9nf ${texts} COMMAND_ERROR_IS_FATAL ANY)
  endif()
endforeach()
