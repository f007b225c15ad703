// Many clients at once: a load of chat streams on a server for a while, with clients that leave at
// points of chance, every word compared with what the same request says alone.
//
//   build/release/bench/stream_load_bench --streams 2500 --seconds 600 --disconnects 500
//
// Starts a server of its own with the small model, or takes the one at --url, which must know it.
// Exit code 1 if a word differs, an answer fails, or something is left behind.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fmt/format.h>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/open_file_limit.h"
#include "cli/commands.h"
#include "measure.h"
#include "stream_load/load_run.h"
#include "stream_load/loaded_server.h"
#include "stream_load/questions.h"

namespace locket::stream_load {
namespace {

constexpr const char* kHelp =
    "stream_load_bench [--streams N] [--waiting N] [--seconds S] [--warmup S] [--disconnects N]\n"
    "                  [--threads N] [--memory MIB] [--seed N] [--url URL]\n"
    "\n"
    "  --streams N      streams that are answered at a time (64)\n"
    "  --waiting N      streams that wait for their turn beside them (a sixteenth)\n"
    "  --seconds S      how long (10)\n"
    "  --warmup S       the same load before, not measured (a fifth of it)\n"
    "  --disconnects N  clients that leave in the middle (32)\n"
    "  --threads N      of the model (2)\n"
    "  --memory MIB     of the server's memory (2048)\n"
    "  --url URL        of a server that runs; its memory is not measured\n"
    "  --benchmark_min_time=...  a small load: does it still work?\n";

struct Options {
  std::size_t streams = 64;
  std::size_t waiting = 0;  // 0: a sixteenth
  double seconds = 10;
  double warmup = 0;  // 0: a fifth
  std::size_t disconnects = 32;
  std::size_t threads = 2;
  std::size_t memory_mib = 2048;
  std::uint64_t seed = 1;
  std::string url;
};

bool read_option(std::string_view name, std::string_view value, Options& options) {
  if (name == "--streams") return read_number(value, options.streams) && options.streams > 0;
  if (name == "--waiting") return read_number(value, options.waiting);
  if (name == "--seconds") return read_number(value, options.seconds);
  if (name == "--warmup") return read_number(value, options.warmup);
  if (name == "--disconnects") return read_number(value, options.disconnects);
  if (name == "--threads") return read_number(value, options.threads);
  if (name == "--memory") return read_number(value, options.memory_mib);
  if (name == "--seed") return read_number(value, options.seed);
  if (name == "--url") options.url = value;
  return name == "--url";
}

// True if all arguments are understood.
bool read_options(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name.starts_with("--benchmark_min_time")) {
      options.streams = 24;
      options.seconds = 2;
      options.disconnects = 12;
      continue;
    }
    if (i + 1 == argc || !read_option(name, argv[++i], options)) return false;
  }
  if (options.waiting == 0) options.waiting = (options.streams + 15) / 16;
  if (options.warmup <= 0) options.warmup = options.seconds / 5;
  return true;
}

// The value that a share of the others does not reach; 0 if there are none.
double quantile(std::vector<float> values, double share) {
  if (values.empty()) return 0;
  const auto rank = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + rank, values.end());
  return static_cast<double>(values[static_cast<std::size_t>(rank)]);
}

double mib(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

// The server at rest: nothing runs, nothing waits.
struct Rest {
  ServerState state;
  std::uint64_t resident_bytes = 0;
  std::size_t open_files = 0;
};

Result<Rest> rest_of(const LoadedServer& server) {
  LOCKET_TRY(const ServerState state, server.wait_until_idle());
  // The ends of thousands of connections are still on their way, and the server gives its memory
  // back when they have come.
  std::this_thread::sleep_for(std::chrono::seconds(5));
  return Rest{
      .state = state, .resident_bytes = server.resident_bytes(), .open_files = server.open_files()};
}

void print_memory(const char* when, const Rest& rest) {
  fmt::print(
      "{}: {:.1f} MiB resident, {:.1f} MiB of them remembered prompts (of {:.0f}), {} open "
      "files\n",
      when, mib(rest.resident_bytes), mib(rest.state.memory_used_bytes),
      mib(rest.state.memory_budget_bytes), rest.open_files);
}

void print_figures(const Options& options, const LoadFigures& figures, const ServerState& begin,
                   const ServerState& end, double seconds) {
  const auto& at = figures.broken_off_at;
  for (const std::string& fault : figures.faults) fmt::print("  {}\n", fault);
  fmt::print("{} answers as alone, {} parts of answers as alone, {} wrong, {} failed\n",
             figures.finished, figures.parts_compared, figures.wrong, figures.failed);
  fmt::print(
      "{} clients left: {} with the request sent, {} waiting, {} at the first word, {} "
      "later\n",
      figures.broken_off, at[0], at[1], at[2], at[3]);
  fmt::print(
      "[figures] {} streams at a time and {} waiting for {:.0f} s, never fewer than {} "
      "open: {:.0f} tokens/s generated, {:.0f} prompt tokens/s read, {:.0f} remembered, "
      "{:.2f} steps/s, {} preemptions; between two events p50 {:.1f} ms, p99 {:.1f} ms, "
      "longest {:.1f} ms; first word p50 {:.2f} s, p99 {:.2f} s\n",
      options.streams, options.waiting, seconds, figures.fewest_open,
      static_cast<double>(end.generated_tokens - begin.generated_tokens) / seconds,
      static_cast<double>(end.prompt_tokens - begin.prompt_tokens) / seconds,
      static_cast<double>(end.hit_tokens - begin.hit_tokens) / seconds,
      static_cast<double>(end.steps - begin.steps) / seconds, end.preemptions - begin.preemptions,
      quantile(figures.gaps, 0.5) * 1e3, quantile(figures.gaps, 0.99) * 1e3,
      quantile(figures.gaps, 1) * 1e3, quantile(figures.first_words, 0.5),
      quantile(figures.first_words, 0.99));
}

Result<bool> run_load(const Options& options) {
  LOCKET_TRY(const LoadedServer server,
             options.url.empty()
                 ? LoadedServer::start({.running = options.streams,
                                        .streams = options.streams + options.waiting,
                                        .threads = options.threads,
                                        .memory_mib = options.memory_mib})
                 : LoadedServer::at(options.url));
  std::vector<Question> questions = make_questions();
  LOCKET_TRY_STATUS(answer_alone(server.address(), questions));
  LoadRun run({.address = server.address(),
               .streams = options.streams + options.waiting,
               .seed = options.seed},
              questions);
  LOCKET_TRY_STATUS(run.keep(options.warmup, 0));
  run.leave_all();
  const bool warm_is_good = run.figures().wrong + run.figures().failed == 0;
  for (const std::string& fault : run.figures().faults) fmt::print("  {}\n", fault);
  run.forget_figures();
  LOCKET_TRY(const Rest before, rest_of(server));
  print_memory("before", before);
  std::fflush(stdout);
  const double start = monotonic_seconds();
  LOCKET_TRY_STATUS(run.keep(options.seconds, options.disconnects));
  const double seconds = monotonic_seconds() - start;
  LOCKET_TRY(const ServerState end, server.state());
  run.leave_all();
  LOCKET_TRY(const Rest after, rest_of(server));
  print_memory("after", after);
  print_figures(options, run.figures(), before.state, end, seconds);
  const bool is_clean = after.open_files <= before.open_files;
  if (!is_clean) fmt::print("the server still has files open that it had not before\n");
  return warm_is_good && is_clean && run.figures().wrong + run.figures().failed == 0;
}

int run_bench(int argc, char** argv) {
  Options options;
  if (!read_options(argc, argv, options)) {
    fmt::print(stderr, "{}", kHelp);
    return 2;
  }
  static_cast<void>(raise_open_file_limit());
  const Result<bool> is_good = run_load(options);
  if (!is_good) fmt::print(stderr, "{}\n", is_good.error().message);
  return is_good && *is_good ? 0 : 1;
}

}  // namespace
}  // namespace locket::stream_load

int main(int argc, char** argv) {
  // The server's process: this very program.
  if (argc > 1 && std::string_view(argv[1]) == "serve") {
    return locket::cli::run_program(argc, argv);
  }
  return locket::stream_load::run_bench(argc, argv);
}
