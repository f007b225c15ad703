// The commands of the program. Each takes its options, prints to stdout (errors to stderr) and
// returns the exit code: 0 done, 1 failed, 2 wrong use.
#pragma once

#include "cli/options.h"

namespace locket::cli {

int run_program(int argc, char** argv);

int run_bench(const BenchOptions& options);
int run_cache(const CacheOptions& options);
int run_chat(const ChatOptions& options);
int run_claims(const ClaimsOptions& options);
int run_demo(const DemoOptions& options);
int run_demo_worker(const DemoWorkerOptions& options);
int run_doctor(const DoctorOptions& options);
int run_inspect(const InspectOptions& options);
int run_lens(const LensOptions& options);
int run_memory(const MemoryOptions& options);
int run_parse(const ParseOptions& options);
int run_render(const RenderOptions& options);
int run_run(const RunOptions& options);
int run_serve(const ServeOptions& options);
int run_tokens(const TokensOptions& options);
int run_trace(const TraceOptions& options);

}  // namespace locket::cli
