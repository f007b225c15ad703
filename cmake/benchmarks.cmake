# Every bench/X_bench.cc is one benchmark program, with the sources in bench/X/ if there are any;
# found by pattern.
find_package(benchmark REQUIRED)
file(GLOB bench_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/*_bench.cc)
foreach(source ${bench_sources})
  get_filename_component(name ${source} NAME_WE)
  string(REGEX REPLACE "_bench$" "" folder ${name})
  file(GLOB parts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/${folder}/*.cc)
  add_executable(${name} ${source} ${parts})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/bench)
  target_link_libraries(${name} PRIVATE locket_cli benchmark::benchmark benchmark::benchmark_main)
  target_compile_definitions(${name} PRIVATE LOCKET_MODELS="${PROJECT_SOURCE_DIR}/models")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
endforeach()
# The only benchmark that calls RocksDB itself: to compare with what the store does.
target_link_libraries(blob_db_bench PRIVATE RocksDB::rocksdb-shared)
# The soak drives the same traffic as the property test of the engine.
target_link_libraries(memory_soak_bench PRIVATE locket_test_support)
# The load asks the server for its state with the HTTP client of the tests.
target_link_libraries(stream_load_bench PRIVATE locket_test_support)
