# The parts of the page /ui, put into one source file of the room server. Run as a script (cmake -P)
# it writes that file; included, it says when and where.
set(LOCKET_UI_SCRIPTS format charts tree state chat page)

if(CMAKE_SCRIPT_MODE_FILE)
  # ui_delimiter: must not stand in any part.
  function(append_part name text)
    if(text MATCHES "\\)ui_part\"")
      message(FATAL_ERROR "a part of the page holds the delimiter )ui_part\"")
    endif()
    set(generated "${generated}const std::string_view ${name} = R\"ui_part(${text})ui_part\";\n"
        PARENT_SCOPE)
  endfunction()

  set(scripts "")
  foreach(script ${LOCKET_UI_SCRIPTS})
    file(READ ${SOURCE_FOLDER}/${script}.js text)
    string(APPEND scripts "${text}")
  endforeach()
  file(READ ${SOURCE_FOLDER}/page.html html)
  file(READ ${SOURCE_FOLDER}/page.css css)
  set(generated "#include \"server/ui_parts.h\"\n\nnamespace locket::server {\n\n")
  append_part(kUiHtml "${html}")
  append_part(kUiStyle "\n${css}")
  append_part(kUiScript "\n${scripts}")
  string(APPEND generated "\n}  // namespace locket::server\n")
  file(WRITE ${TARGET_FILE} "${generated}")
  return()
endif()

set(ui_folder ${PROJECT_SOURCE_DIR}/src/server/ui)
set(ui_source ${CMAKE_BINARY_DIR}/generated/ui_parts.cc)
set(ui_parts ${ui_folder}/page.html ${ui_folder}/page.css)
foreach(script ${LOCKET_UI_SCRIPTS})
  list(APPEND ui_parts ${ui_folder}/${script}.js)
endforeach()
add_custom_command(
  OUTPUT ${ui_source}
  COMMAND ${CMAKE_COMMAND} -D SOURCE_FOLDER=${ui_folder} -D TARGET_FILE=${ui_source} -P
          ${CMAKE_CURRENT_LIST_FILE}
  DEPENDS ${ui_parts} ${CMAKE_CURRENT_LIST_FILE}
  VERBATIM)
target_sources(locket_server PRIVATE ${ui_source})
