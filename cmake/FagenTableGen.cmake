# fagen_tablegen(output generator input): runs fagen-tblgen -<generator> on include/fagen/td/<input> and writes
# <build>/include/<output>. Everything that includes the output depends on the target fagen_generated.
function(fagen_tablegen output generator input)
  set(path ${PROJECT_BINARY_DIR}/include/${output})
  set(source ${PROJECT_SOURCE_DIR}/include/fagen/td/${input})
  cmake_path(GET path PARENT_PATH directory)
  file(MAKE_DIRECTORY ${directory})
  add_custom_command(
    OUTPUT ${path}
    COMMAND fagen-tblgen -${generator} -I ${PROJECT_SOURCE_DIR}/include ${source} -o ${path} -d ${path}.d
    DEPENDS fagen-tblgen ${source}
    DEPFILE ${path}.d
    COMMENT "Generating ${output}"
    VERBATIM
  )
  set_property(GLOBAL APPEND PROPERTY FAGEN_GENERATED ${path})
endfunction()

# Makes fagen_generated out of all outputs so far; called once, at the end of include/fagen/td/CMakeLists.txt.
function(fagen_tablegen_target)
  get_property(outputs GLOBAL PROPERTY FAGEN_GENERATED)
  add_custom_target(fagen_generated DEPENDS ${outputs})
endfunction()
