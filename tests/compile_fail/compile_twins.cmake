# Compiles ${TWINS}_good.cc and ${TWINS}_bad.cc and fails unless only the first builds.
function(compile source result_variable output_variable)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env LC_ALL=C ${COMPILER} -std=c++20 -fsyntax-only -Wall -Wextra -Werror -I${SOURCES} ${source}
    RESULT_VARIABLE result
    OUTPUT_VARIABLE output
    ERROR_VARIABLE output)
  set(${result_variable} ${result} PARENT_SCOPE)
  set(${output_variable} "${output}" PARENT_SCOPE)
endfunction()

compile(${TWINS}_good.cc good_result good_output)
if(NOT good_result EQUAL 0)
  message(FATAL_ERROR "${TWINS}_good.cc does not build:\n${good_output}")
endif()

file(STRINGS ${TWINS}_bad.cc first_line LIMIT_COUNT 1)
if(NOT first_line MATCHES "^// expect: (.+)$")
  message(FATAL_ERROR "${TWINS}_bad.cc: the first line must be '// expect: regular expression'")
endif()
set(expected "${CMAKE_MATCH_1}")
compile(${TWINS}_bad.cc bad_result bad_output)
if(bad_result EQUAL 0)
  message(FATAL_ERROR "${TWINS}_bad.cc builds")
endif()
if(NOT bad_output MATCHES "${expected}")
  message(FATAL_ERROR "${TWINS}_bad.cc fails, but not with '${expected}':\n${bad_output}")
endif()
