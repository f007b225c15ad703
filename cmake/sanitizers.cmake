# LOCKET_SANITIZE: "" | address (with undefined) | thread
set(LOCKET_SANITIZE "" CACHE STRING "sanitizer: empty, address or thread")
if(LOCKET_SANITIZE)
  # Instrumented code hides from g++ what it would need to see; without sanitizers the warning is on.
  add_compile_options(-Wno-maybe-uninitialized)
endif()
if(LOCKET_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
elseif(LOCKET_SANITIZE STREQUAL "thread")
  # Asio has fences, which TSan does not see; g++ would warn of each.
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer -Wno-tsan)
  add_link_options(-fsanitize=thread)
elseif(LOCKET_SANITIZE)
  message(FATAL_ERROR "LOCKET_SANITIZE=${LOCKET_SANITIZE}: known values are address and thread")
endif()
