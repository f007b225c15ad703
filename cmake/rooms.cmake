# The one list of rooms: level, what each may include, how it is built and how its tests are found.
# tools/check_rooms.py reads the locket_room() calls of this file and checks every include against them.

# locket_room(NAME LEVEL n [MAY_INCLUDE room...] [LIBRARIES target...])
#   builds src/NAME/**.cc as the library locket_NAME; links the rooms it may include and LIBRARIES (private).
function(locket_room name)
  cmake_parse_arguments(ROOM "" "LEVEL" "MAY_INCLUDE;LIBRARIES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cc)
  list(FILTER sources EXCLUDE REGEX "/main\\.cc$")
  if(NOT sources)
    message(FATAL_ERROR "room ${name} has no source files")
  endif()
  add_library(locket_${name} STATIC ${sources})
  target_include_directories(locket_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  foreach(other ${ROOM_MAY_INCLUDE})
    target_link_libraries(locket_${name} PUBLIC locket_${other})
  endforeach()
  target_link_libraries(locket_${name} PRIVATE ${ROOM_LIBRARIES} PUBLIC tl::expected)
  locket_sanitize(locket_${name})
endfunction()

# The table. "MAY_INCLUDE" is complete: everything not listed is forbidden.
locket_room(base LEVEL 0 LIBRARIES spdlog::spdlog fmt::fmt OpenSSL::Crypto PkgConfig::XXHASH)
locket_room(numerics LEVEL 1 MAY_INCLUDE base)
locket_room(tensor LEVEL 2 MAY_INCLUDE base numerics)
locket_room(checkpoint LEVEL 3 MAY_INCLUDE base numerics tensor
            LIBRARIES fmt::fmt nlohmann_json::nlohmann_json)
locket_room(tokenizer LEVEL 3 MAY_INCLUDE base
            LIBRARIES fmt::fmt nlohmann_json::nlohmann_json PkgConfig::PCRE2 ICU::uc ICU::i18n)
locket_room(kernels LEVEL 3 MAY_INCLUDE base numerics tensor LIBRARIES hwy::hwy)
locket_room(cache LEVEL 3 MAY_INCLUDE base tensor LIBRARIES fmt::fmt RocksDB::rocksdb-shared)
locket_room(model LEVEL 4 MAY_INCLUDE base numerics tensor kernels checkpoint cache
            LIBRARIES fmt::fmt)
locket_room(engine LEVEL 5 MAY_INCLUDE base numerics tensor model cache checkpoint
            LIBRARIES fmt::fmt)
locket_room(chat LEVEL 5 MAY_INCLUDE base tokenizer
            LIBRARIES fmt::fmt nlohmann_json::nlohmann_json)
locket_room(service LEVEL 6 MAY_INCLUDE base tokenizer chat engine checkpoint
            LIBRARIES fmt::fmt nlohmann_json::nlohmann_json)
locket_room(server LEVEL 7 MAY_INCLUDE base tokenizer chat engine service
            LIBRARIES fmt::fmt nlohmann_json::nlohmann_json prometheus-cpp::core Boost::headers)
locket_room(cli LEVEL 8
            MAY_INCLUDE base numerics tensor checkpoint tokenizer kernels cache model engine chat
                        service server
            LIBRARIES fmt::fmt nlohmann_json::nlohmann_json CLI11::CLI11)
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/cli/options.cc
                            ${PROJECT_SOURCE_DIR}/src/server/endpoints.cc PROPERTIES
                            COMPILE_DEFINITIONS LOCKET_VERSION="${PROJECT_VERSION}")
