#include <variant>

#include "base/system_memory.h"
#include "cli/commands.h"
#include "cli/kernel_pin.h"
#include "cli/model_setup.h"

namespace locket::cli {
namespace {

constexpr int kWrongUse = 2;

// One overload per command; std::visit below does not compile if one is missing.
int run(const BenchOptions& options) { return run_bench(options); }
int run(const CacheOptions& options) { return run_cache(options); }
int run(const ChatOptions& options) { return run_chat(options); }
int run(const ClaimsOptions& options) { return run_claims(options); }
int run(const DemoOptions& options) { return run_demo(options); }
int run(const DemoWorkerOptions& options) { return run_demo_worker(options); }
int run(const DoctorOptions& options) { return run_doctor(options); }
int run(const InspectOptions& options) { return run_inspect(options); }
int run(const LensOptions& options) { return run_lens(options); }
int run(const MemoryOptions& options) { return run_memory(options); }
int run(const ParseOptions& options) { return run_parse(options); }
int run(const RenderOptions& options) { return run_render(options); }
int run(const RunOptions& options) { return run_run(options); }
int run(const ServeOptions& options) { return run_serve(options); }
int run(const TokensOptions& options) { return run_tokens(options); }
int run(const TraceOptions& options) { return run_trace(options); }

}  // namespace

int run_program(int argc, char** argv) {
  tune_allocator();
  if (const Status pinned = pin_kernels(); !pinned) {
    report(pinned.error());
    return kWrongUse;
  }
  const ParsedOptions parsed = parse_options(argc, argv);
  if (!parsed.command.has_value()) return parsed.exit_code;
  return std::visit([](const auto& options) { return run(options); }, *parsed.command);
}

}  // namespace locket::cli
