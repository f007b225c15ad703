# Code that must not build. Every X_bad.cc here has a twin X_good.cc that differs in the fault only:
# the twin must build with the program's warnings as errors, the other must fail with the message
# that its first line names (`// expect: regular expression`). Found by pattern, never listed.
set(compile_fail_folder ${CMAKE_CURRENT_LIST_DIR})
file(GLOB bad_sources CONFIGURE_DEPENDS ${compile_fail_folder}/*_bad.cc)
foreach(bad ${bad_sources})
  get_filename_component(name ${bad} NAME_WE)
  string(REGEX REPLACE "_bad$" "" name ${name})
  add_test(NAME compile_fail_${name}
           COMMAND ${CMAKE_COMMAND} -DCOMPILER=${CMAKE_CXX_COMPILER} -DSOURCES=${PROJECT_SOURCE_DIR}/src
                   -DTWINS=${compile_fail_folder}/${name} -P ${compile_fail_folder}/compile_twins.cmake)
endforeach()
