# LOCKET_SANITIZE: "" | address (with undefined) | thread
set(LOCKET_SANITIZE "" CACHE STRING "sanitizer: empty, address or thread")
# For the program's code: debug checks, and what g++ warns of only because instrumented code hides from
# it what it would need to see.
set(sanitized_options -O1 -finline-small-functions -fno-omit-frame-pointer -DLOCKET_DEBUG_CHECKS=1
                      -Wno-maybe-uninitialized)
if(LOCKET_SANITIZE STREQUAL "address")
  list(APPEND sanitized_options -fsanitize=address,undefined -fno-sanitize-recover=all)
  add_link_options(-fsanitize=address,undefined)
elseif(LOCKET_SANITIZE STREQUAL "thread")
  # Asio has fences, which TSan does not see; g++ would warn of each.
  add_compile_options(-fsanitize=thread -Wno-tsan)
  add_link_options(-fsanitize=thread)
elseif(LOCKET_SANITIZE)
  message(FATAL_ERROR "LOCKET_SANITIZE=${LOCKET_SANITIZE}: known values are address and thread")
endif()

# locket_sanitize(TARGET): a part of the program, or of what tests share. Test programs themselves are not
# instrumented for addresses: that doubles what they take to compile, and what the program does with their heap
# is watched all the same. Small functions of headers are inlined into the program, so that the linker does not
# take a test's copy. Threads are watched only where both sides of an access are instrumented: there all is.
function(locket_sanitize target)
  if(LOCKET_SANITIZE)
    target_compile_options(${target} PRIVATE ${sanitized_options})
  endif()
endfunction()
