#include "kernels/kernel_choice.h"

#include <algorithm>
#include <array>
#include <string>

namespace locket::kernels {
namespace {

// Every name that some machine has.
constexpr std::array<std::string_view, 5> kKnownNames = {"reference", "avx2", "avx512",
                                                         "avx512_bf16", "avx512_amx"};

}  // namespace

std::string available_kernel_names() {
  std::string names;
  for (const KernelTable* table : available_kernels()) {
    if (!names.empty()) names += ", ";
    names += table->name;
  }
  return names;
}

Result<const KernelTable*> find_kernels(std::string_view name) {
  for (const KernelTable* table : available_kernels()) {
    if (table->name == name) return table;
  }
  const bool is_known = std::ranges::find(kKnownNames, name) != kKnownNames.end();
  const std::string quoted = "\"" + std::string(name) + "\"";
  const std::string choices = available_kernel_names();
  if (is_known) {
    return fail(ErrorCode::kUnsupported,
                "this machine cannot run the kernels " + quoted + "; it has: " + choices);
  }
  return fail(ErrorCode::kBadRequest,
              "there are no kernels named " + quoted + "; this machine has: " + choices);
}

}  // namespace locket::kernels
