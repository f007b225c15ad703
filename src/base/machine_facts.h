// What this process finds of its machine: processors and memory with the limits of its control
// group, large pages, clock source. Read from the system when asked, for people and for plans;
// nothing here fails, what cannot be read is 0, empty or unknown. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace locket {

// Whether large pages can be had by asking for them.
enum class LargePages { kAlways, kOnRequest, kNever, kUnknown, kCount };

struct MachineFacts {
  std::string processor;            // as the system names it
  std::size_t online_threads = 0;   // hardware threads of the machine that are on
  std::size_t allowed_threads = 0;  // of them, those that this process may run on
  double quota_threads = 0;         // processor time per time that the control group allows; 0: any
  std::uint64_t memory_bytes = 0;   // of the machine
  std::uint64_t memory_limit = 0;   // of the control group; 0: none
  std::uint64_t memory_available = 0;
  std::uint64_t swapped_bytes = 0;  // of this machine's memory, now on disk
  LargePages large_pages = LargePages::kUnknown;
  std::string clock_source;      // "tsc"
  std::uint64_t open_files = 0;  // that this process may have; after raising it as far as it goes
};

MachineFacts read_machine_facts();

}  // namespace locket
