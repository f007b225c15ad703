// locket doctor: checks everything that an answer depends on, and says in words what is wrong.
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/doctor_checks.h"
#include "cli/memory_path.h"
#include "cli/model_path.h"

namespace locket::cli {
namespace {

constexpr int kFailed = 1;

void append(std::vector<Finding>& findings, std::vector<Finding> more) {
  findings.insert(findings.end(), std::make_move_iterator(more.begin()),
                  std::make_move_iterator(more.end()));
}

// The memory's folder, if there is one to write a file into.
std::filesystem::path disk_to_measure(const Result<MemoryChoice>& memory) {
  std::error_code ignored;
  const bool is_there =
      memory && !memory->is_off && std::filesystem::is_directory(memory->directory, ignored);
  return is_there ? memory->directory : std::filesystem::path();
}

std::vector<Finding> examine(const DoctorOptions& options) {
  std::vector<Finding> findings = check_machine(read_machine_facts(), options.model.threads);
  findings.push_back(check_clock(wall_seconds()));
  append(findings, check_all_kernels());
  const Result<std::filesystem::path> folder = resolve_model(options.model.model);
  if (folder) {
    append(findings, check_checkpoint(*folder));
  } else {
    findings.push_back({.level = Finding::Level::kFailure,
                        .area = "checkpoint",
                        .name = "folder",
                        .text = folder.error().message,
                        .advice = {}});
  }
  const Result<MemoryChoice> memory = choose_memory(options.model.memory);
  if (memory) append(findings, check_memory(*memory, options.model.memory_quota_bytes));
  if (options.measures) {
    append(findings, measure_machine(options.model.threads, disk_to_measure(memory)));
  }
  return findings;
}

}  // namespace

int run_doctor(const DoctorOptions& options) {
  const std::vector<Finding> findings = examine(options);
  const std::string text = options.json ? findings_json(findings) : findings_text(findings);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return is_healthy(findings) ? 0 : kFailed;
}

}  // namespace locket::cli
