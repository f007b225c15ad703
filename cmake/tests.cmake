# Every tests/<folder>/**/*_test.cc is one test program, named <folder>_<file>; found by pattern, never listed.
find_package(GTest REQUIRED)

file(GLOB_RECURSE support_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/support/*.cc)
add_library(locket_test_support STATIC ${support_sources})
target_include_directories(locket_test_support PUBLIC ${PROJECT_SOURCE_DIR})
target_link_libraries(locket_test_support PUBLIC locket_cli GTest::gtest GTest::gmock fmt::fmt
                                                 nlohmann_json::nlohmann_json hwy::hwy)
target_compile_definitions(
  locket_test_support
  PUBLIC LOCKET_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data"
         LOCKET_MODELS="${PROJECT_SOURCE_DIR}/models"
         LOCKET_GENERATED_DATA="${PROJECT_SOURCE_DIR}/build/test_data")
set_source_files_properties(${PROJECT_SOURCE_DIR}/tests/support/run_program.cc
                            PROPERTIES COMPILE_DEFINITIONS LOCKET_PROGRAM="$<TARGET_FILE:locket>")
locket_sanitize(locket_test_support)
# What a test program itself does takes no time, and compiling it with optimization takes most of the
# build: so it is compiled without, and its common headers are parsed once.
# The headers' owner is a program, as they are: libraries are compiled for other places in memory.
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/test_headers.cc "int main() { return 0; }\n")
add_executable(locket_test_headers ${CMAKE_CURRENT_BINARY_DIR}/test_headers.cc)
target_link_libraries(locket_test_headers PRIVATE locket_test_support GTest::gtest_main)
target_compile_options(locket_test_headers PRIVATE -O0)
target_precompile_headers(
  locket_test_headers
  PRIVATE <algorithm> <array> <atomic> <chrono> <cmath> <condition_variable> <cstddef> <cstdint> <cstring>
          <filesystem> <fstream> <functional> <limits> <map> <memory> <mutex> <optional> <set> <span> <sstream>
          <string> <string_view> <thread> <unordered_map> <utility> <variant> <vector> <fmt/format.h>
          <tl/expected.hpp> <gmock/gmock.h> <gtest/gtest.h>)

file(GLOB_RECURSE test_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/*_test.cc)
foreach(source ${test_sources})
  file(RELATIVE_PATH relative ${PROJECT_SOURCE_DIR}/tests ${source})
  string(REPLACE "/" "_" name ${relative})
  string(REGEX REPLACE "\\.cc$" "" name ${name})
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE locket_test_support GTest::gtest_main)
  target_compile_options(${name} PRIVATE -O0)
  target_precompile_headers(${name} REUSE_FROM locket_test_headers)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_dependencies(${name} locket)
  add_test(NAME ${name} COMMAND ${name})
  # A forked child has none of the threads but may have their locks: death tests start the program anew.
  set_tests_properties(${name} PROPERTIES TIMEOUT 900 ENVIRONMENT "GTEST_DEATH_TEST_STYLE=threadsafe")
endforeach()

find_package(Python3 REQUIRED COMPONENTS Interpreter)
foreach(check check_rooms check_sizes)
  add_test(NAME ${check}
           COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tools/${check}.py)
endforeach()

# Every tests/tools/*_test.py is one test of the Python tools.
file(GLOB tool_tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/tools/*_test.py)
foreach(source ${tool_tests})
  get_filename_component(name ${source} NAME_WE)
  add_test(NAME tools_${name} COMMAND ${Python3_EXECUTABLE} -B ${source})
endforeach()

include(${PROJECT_SOURCE_DIR}/tests/compile_fail/compile_fail.cmake)
