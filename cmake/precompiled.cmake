# Headers that most files include, parsed once for each set of flags. Outside the rooms' release build,
# which shows that every file includes what it uses and where g++ sees through all of a function.
set(LOCKET_COMMON_HEADERS
    <algorithm> <array> <atomic> <chrono> <cmath> <condition_variable> <cstddef> <cstdint> <cstring> <filesystem>
    <fstream> <functional> <limits> <map> <memory> <mutex> <optional> <set> <span> <sstream> <string>
    <string_view> <thread> <unordered_map> <utility> <variant> <vector> <fmt/format.h> <tl/expected.hpp>)

option(LOCKET_PRECOMPILED "parse the common headers of the rooms once" OFF)

# locket_precompile(TARGET): the first target of the rooms owns the parsed headers, the others share them.
# They have to link fmt, as the owner does: its macro must be the same.
function(locket_precompile target)
  if(NOT LOCKET_PRECOMPILED)
    return()
  endif()
  # g++ 12 forgets that these come from system headers, and finds faults in std::string.
  target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow)
  if(target STREQUAL locket_base)
    target_precompile_headers(${target} PRIVATE ${LOCKET_COMMON_HEADERS})
  else()
    target_precompile_headers(${target} REUSE_FROM locket_base)
  endif()
endfunction()
