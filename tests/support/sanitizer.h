// Whether the program runs with AddressSanitizer or ThreadSanitizer.
#pragma once

namespace locket::test_support {

// Sanitizers make everything ten times slower: tests with large grids then take a part of them.
// They pad every allocation, too, and keep what is freed: what is measured then says nothing.
bool runs_with_sanitizer();

}  // namespace locket::test_support
