// How much memory this process has and may still take.
#pragma once

#include <cstdint>

namespace locket {

// The least of the machine's available memory and what the process's control groups leave; 0 if
// neither can be read.
std::uint64_t available_memory_bytes();

// Bytes of this process that lie in memory now (its resident set); 0 if that cannot be read.
std::uint64_t resident_memory_bytes();

// Gives freed memory that the allocator keeps back to the system, so that the resident set is what
// is in use.
void return_freed_memory();

// Sets the allocator up for a process that asks for blocks of many sizes all the time: small blocks
// are merged when they are freed, else it stops to sort them whenever a large one is wanted; and
// all threads share one heap, else what one of them frees cannot serve the others, and the resident
// set of a busy server grows with every crowd. To be called once, before the first thread starts.
void tune_allocator();

}  // namespace locket
