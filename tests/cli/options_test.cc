// What the command line means: each command's options, their defaults, ranges and refusals.
#include "cli/options.h"

#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <vector>

namespace locket::cli {
namespace {

using Words = std::vector<std::string>;

struct Answer {
  ParsedOptions parsed;
  std::string output;
  std::string errors;
};

Answer parse(Words words) {
  words.insert(words.begin(), "locket");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Answer answer;
  answer.parsed = parse_options(static_cast<int>(words.size()), argv.data());
  answer.output = testing::internal::GetCapturedStdout();
  answer.errors = testing::internal::GetCapturedStderr();
  return answer;
}

// The options of a command line that must be right.
template <class Options>
Options parsed(const Words& words) {
  const Answer answer = parse(words);
  EXPECT_EQ(answer.errors, "");
  EXPECT_EQ(answer.parsed.exit_code, 0);
  const auto* options =
      answer.parsed.command ? std::get_if<Options>(&*answer.parsed.command) : nullptr;
  EXPECT_NE(options, nullptr);
  return options == nullptr ? Options{} : *options;
}

// A command line that must be refused with a message that holds each of `parts`.
void expect_refused(const Words& words, const Words& parts) {
  const Answer answer = parse(words);
  SCOPED_TRACE(testing::PrintToString(words));
  EXPECT_FALSE(answer.parsed.command.has_value());
  EXPECT_EQ(answer.parsed.exit_code, 2);
  EXPECT_EQ(answer.output, "");
  for (const std::string& part : parts) {
    EXPECT_NE(answer.errors.find(part), std::string::npos) << answer.errors;
  }
}

TEST(OptionsTest, RunTakesAPromptAndKeepsDefaults) {
  const auto options = parsed<RunOptions>({"run", "-p", "Hi"});
  EXPECT_EQ(options.prompt, "Hi");
  EXPECT_EQ(options.messages, "");
  EXPECT_EQ(options.model.model, "");
  EXPECT_EQ(options.model.mode, "");
  EXPECT_EQ(options.model.replay, "bounded");
  EXPECT_EQ(options.model.threads, 0U);
  EXPECT_EQ(options.model.memory_budget_bytes, 0U);
  EXPECT_EQ(options.sampling.temperature, 0.0);
  EXPECT_EQ(options.sampling.top_p, 1.0);
  EXPECT_EQ(options.effort, "");
  EXPECT_FALSE(options.json);
}

TEST(OptionsTest, RunTakesEveryModelAndSamplingOption) {
  const auto options = parsed<RunOptions>({"run",
                                           "folder",
                                           "--messages",
                                           "m.json",
                                           "--mode",
                                           "wide",
                                           "--replay",
                                           "full",
                                           "--threads",
                                           "3",
                                           "--memory-budget",
                                           "4G",
                                           "--json",
                                           "--effort",
                                           "37",
                                           "--temperature",
                                           "0.7",
                                           "--top-k",
                                           "40",
                                           "--top-p",
                                           "0.95",
                                           "--min-p",
                                           "0.05",
                                           "--seed",
                                           "18446744073709551615",
                                           "--max-tokens",
                                           "99",
                                           "--stop",
                                           "a",
                                           "--stop",
                                           "b"});
  EXPECT_EQ(options.model.model, "folder");
  EXPECT_EQ(options.messages, "m.json");
  EXPECT_EQ(options.model.mode, "wide");
  EXPECT_EQ(options.model.replay, "full");
  EXPECT_EQ(options.model.threads, 3U);
  EXPECT_EQ(options.model.memory_budget_bytes, std::uint64_t{4} << 30);
  EXPECT_TRUE(options.json);
  EXPECT_EQ(options.effort, "37");
  EXPECT_EQ(options.sampling.temperature, 0.7);
  EXPECT_EQ(options.sampling.top_k, 40);
  EXPECT_EQ(options.sampling.top_p, 0.95);
  EXPECT_EQ(options.sampling.min_p, 0.05);
  EXPECT_EQ(options.sampling.seed, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(options.sampling.max_tokens, 99);
  EXPECT_EQ(options.sampling.stop, (Words{"a", "b"}));
}

TEST(OptionsTest, RunNeedsExactlyOneSourceOfText) {
  expect_refused({"run"}, {"locket run", "-p TEXT", "--messages FILE"});
  expect_refused({"run", "-p", "a", "--messages", "b"}, {"--prompt", "--messages"});
}

TEST(OptionsTest, ChatTakesSystemAndEffort) {
  const auto options =
      parsed<ChatOptions>({"chat", "m", "--system", "Be kind.", "--effort", "low"});
  EXPECT_EQ(options.model.model, "m");
  EXPECT_EQ(options.system, "Be kind.");
  EXPECT_EQ(options.effort, "low");
}

TEST(OptionsTest, RunChatAndDemoTakeAPlaceAndASizeOfTheMemory) {
  const Words more = {"--memory", "/m", "--memory-quota", "3G", "--memory-budget", "2M"};
  const auto with = [&](Words words) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const std::vector<ModelOptions> all = {parsed<RunOptions>(with({"run", "-p", "x"})).model,
                                         parsed<ChatOptions>(with({"chat"})).model,
                                         parsed<DemoOptions>(with({"demo"})).model};
  for (const ModelOptions& options : all) {
    EXPECT_EQ(options.memory, "/m");
    EXPECT_EQ(options.memory_quota_bytes, std::uint64_t{3} << 30);
    EXPECT_EQ(options.memory_budget_bytes, std::uint64_t{2} << 20);
  }
  EXPECT_EQ(parsed<RunOptions>({"run", "-p", "x"}).model.memory, "");
  EXPECT_EQ(parsed<RunOptions>({"run", "-p", "x"}).model.memory_quota_bytes, 0U);
  expect_refused({"chat", "--memory", ""}, {"--memory", "a folder or off is needed"});
  expect_refused({"chat", "--memory-quota", "much"}, {"--memory-quota", "much"});
  expect_refused({"trace", "--ids", "i", "-o", "o", "--memory", "/m"}, {"--memory"});
}

TEST(OptionsTest, ChatTakesASessionOrListsThem) {
  EXPECT_EQ(parsed<ChatOptions>({"chat", "--session", "trip to Rome"}).session, "trip to Rome");
  EXPECT_TRUE(parsed<ChatOptions>({"chat", "--sessions"}).lists_sessions);
  EXPECT_FALSE(parsed<ChatOptions>({"chat"}).lists_sessions);
  expect_refused({"chat", "--session", "a", "--sessions"}, {"--session", "--sessions"});
  expect_refused({"chat", "--session", ""}, {"--session", "1 to 200 bytes"});
  expect_refused({"chat", "--session", "a\nb"}, {"--session", "control characters"});
}

TEST(OptionsTest, EffortIsANameOrOneToAHundred) {
  for (const char* effort :
       {"1", "100", "none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra"}) {
    EXPECT_EQ(parsed<RunOptions>({"run", "-p", "x", "--effort", effort}).effort, effort);
  }
  for (const char* effort : {"0", "101", "-1", "5x", "LOW", "hard", "1.5"}) {
    expect_refused({"run", "-p", "x", std::string("--effort=") + effort}, {"--effort", effort});
  }
}

TEST(OptionsTest, DemoInspectAndMemoryTakeTheirCounts) {
  EXPECT_EQ(parsed<DemoOptions>({"demo"}).conversations, 50);
  EXPECT_EQ(parsed<DemoOptions>({"demo", "--conversations", "5"}).conversations, 5);
  EXPECT_EQ(parsed<InspectOptions>({"inspect"}).context, 32768);
  EXPECT_EQ(parsed<InspectOptions>({"inspect", "m", "--context", "100"}).context, 100);
  EXPECT_FALSE(parsed<InspectOptions>({"inspect"}).plan);
  const auto plan = parsed<InspectOptions>({"inspect", "m", "--plan", "--expert-memory", "20G"});
  EXPECT_TRUE(plan.plan);
  EXPECT_EQ(plan.model.expert_memory_bytes, std::uint64_t{20} << 30);
  EXPECT_TRUE(parsed<MemoryOptions>({"memory"}).models.empty());
  EXPECT_EQ(parsed<MemoryOptions>({"memory"}).tokens, 0);
  const auto memory = parsed<MemoryOptions>({"memory", "a", "b", "--tokens", "64"});
  EXPECT_EQ(memory.models, (std::vector<std::filesystem::path>{"a", "b"}));
  EXPECT_EQ(memory.tokens, 64);
  EXPECT_FALSE(memory.is_computed_only);
  EXPECT_EQ(parsed<MemoryOptions>({"memory", "--budget", "2G"}).budget_bytes,
            std::uint64_t{2} << 30);
}

TEST(OptionsTest, LensTakesOneText) {
  const auto lens = parsed<LensOptions>({"lens", "m", "-p", "Hi", "--html", "h", "--rows", "3"});
  EXPECT_EQ(lens.prompt, "Hi");
  EXPECT_EQ(lens.html, "h");
  EXPECT_EQ(lens.rows, 3);
  expect_refused({"lens", "-p", "Hi", "--ids", "file"}, {"--ids"});
  expect_refused({"lens", "--ids", "file", "--messages", "file"}, {"--messages"});
  expect_refused({"memory", "m", "--json"}, {"--json"});
  expect_refused({"memory", "--computed", "--budget", "2G"}, {"--computed"});
  EXPECT_TRUE(parsed<ClaimsOptions>({"claims", "--quick"}).is_quick);
}

TEST(OptionsTest, TraceTakesEveryOption) {
  const auto options = parsed<TraceOptions>({"trace",
                                             "m",
                                             "--ids",
                                             "i.json",
                                             "-o",
                                             "o.safetensors",
                                             "--mode",
                                             "plain",
                                             "--chunk",
                                             "7",
                                             "--decode-from",
                                             "9",
                                             "--replay",
                                             "exact",
                                             "--threads",
                                             "1",
                                             "--index-scores",
                                             "bf16",
                                             "--what",
                                             "streams,rows",
                                             "--what",
                                             "router",
                                             "--layer",
                                             "2",
                                             "--from",
                                             "f.safetensors"});
  EXPECT_EQ(options.model.model, "m");
  EXPECT_EQ(options.ids, "i.json");
  EXPECT_EQ(options.output, "o.safetensors");
  EXPECT_EQ(options.model.mode, "plain");
  EXPECT_EQ(options.chunk, 7);
  EXPECT_EQ(options.decode_from, 9);
  EXPECT_EQ(options.model.replay, "exact");
  EXPECT_EQ(options.index_scores, "bf16");
  EXPECT_EQ(options.what, (Words{"streams", "rows", "router"}));
  EXPECT_EQ(options.layer, 2);
  EXPECT_EQ(options.from, "f.safetensors");
}

TEST(OptionsTest, TraceWritesLogitsIfNothingElseIsAskedFor) {
  const auto options = parsed<TraceOptions>({"trace", "--ids", "i", "-o", "o"});
  EXPECT_EQ(options.what, (Words{"logits"}));
  EXPECT_EQ(options.index_scores, "f32");
  EXPECT_EQ(options.chunk, 0);
  EXPECT_FALSE(options.decode_from.has_value());
  EXPECT_FALSE(options.layer.has_value());
}

TEST(OptionsTest, TraceKnowsEveryPartByName) {
  for (const char* part :
       {"logits", "streams", "attention", "moe", "rows", "window", "index", "router"}) {
    EXPECT_EQ(parsed<TraceOptions>({"trace", "--ids", "i", "-o", "o", "--what", part}).what,
              (Words{part}));
  }
  expect_refused({"trace", "--ids", "i", "-o", "o", "--what", "logits,norms"},
                 {"--what", "norms", "router"});
}

TEST(OptionsTest, TraceNamesWhatIsMissing) {
  expect_refused({"trace", "-o", "o"}, {"locket trace", "--ids"});
  expect_refused({"trace", "--ids", "i"}, {"locket trace", "--output"});
  expect_refused({"trace", "--ids", "i", "-o", "o", "--layer", "2"}, {"--layer", "--from"});
  expect_refused({"trace", "--ids", "i", "-o", "o", "--from", "f"}, {"--layer", "--from"});
}

TEST(OptionsTest, TokensTakesAModelOrATokenizer) {
  EXPECT_EQ(parsed<TokensOptions>({"tokens", "m", "--json"}).model, "m");
  const auto options = parsed<TokensOptions>({"tokens", "--tokenizer", "t.json", "--decode"});
  EXPECT_EQ(options.tokenizer, "t.json");
  EXPECT_TRUE(options.decode);
  EXPECT_FALSE(options.json);
  expect_refused({"tokens", "m", "--tokenizer", "t.json"}, {"MODEL", "--tokenizer"});
}

TEST(OptionsTest, RenderAndParseReadStandardInput) {
  EXPECT_EQ(parsed<RenderOptions>({"render"}).tokenizer, "");
  EXPECT_EQ(parsed<RenderOptions>({"render", "--tokenizer", "t.json"}).tokenizer, "t.json");
  EXPECT_FALSE(parsed<ParseOptions>({"parse"}).chunks.has_value());
  EXPECT_EQ(parsed<ParseOptions>({"parse", "--chunks", "1"}).chunks, 1);
  expect_refused({"parse", "file.txt"}, {"locket parse", "file.txt"});
}

TEST(OptionsTest, SizesTakeBinaryUnits) {
  const auto budget = [](const char* text) {
    return parsed<DemoOptions>({"demo", "--memory-budget", text}).model.memory_budget_bytes;
  };
  EXPECT_EQ(budget("0"), 0U);
  EXPECT_EQ(budget("12345"), 12345U);
  EXPECT_EQ(budget("3K"), 3072U);
  EXPECT_EQ(budget("512M"), std::uint64_t{512} << 20);
  EXPECT_EQ(budget("4G"), std::uint64_t{4} << 30);
  EXPECT_EQ(budget("16777215T"), std::uint64_t{16777215} << 40);
  for (const char* text :
       {"4X", "G", "1.5G", "-1", "4GG", "16777216T", "99999999999999999999", "4 G"}) {
    expect_refused({"demo", std::string("--memory-budget=") + text},
                   {"--memory-budget", text, "K, M, G or T"});
  }
}

TEST(OptionsTest, RangesIncludeTheirEnds) {
  for (const Words& words : std::vector<Words>{{"--temperature", "0"},
                                               {"--temperature", "2"},
                                               {"--top-k", "0"},
                                               {"--top-p", "0"},
                                               {"--top-p", "1"},
                                               {"--min-p", "1"},
                                               {"--seed", "0"},
                                               {"--threads", "1024"},
                                               {"--max-tokens", "0"}}) {
    parsed<RunOptions>({"run", "-p", "x", words[0], words[1]});
  }
}

TEST(OptionsTest, ValuesOutOfRangeAreRefusedWithTheRange) {
  for (const Words& words : std::vector<Words>{{"--temperature", "2.1", "0 to 2"},
                                               {"--temperature", "-0.1", "0 to 2"},
                                               {"--temperature", "nan", "0 to 2"},
                                               {"--temperature", "warm", "0 to 2"},
                                               {"--top-k", "-1", "from 0"},
                                               {"--top-k", "1.5", "from 0"},
                                               {"--top-p", "1.01", "0 to 1"},
                                               {"--min-p", "-1", "0 to 1"},
                                               {"--seed", "-1", "from 0"},
                                               {"--threads", "1025", "0 to 1024"},
                                               {"--threads", "-1", "0 to 1024"},
                                               {"--max-tokens", "-1", "from 0"},
                                               {"--mode", "quick", "reference"},
                                               {"--replay", "none", "bounded"}}) {
    expect_refused({"run", "-p", "x", words[0] + "=" + words[1]}, words);
  }
  expect_refused({"demo", "--conversations=0"}, {"--conversations", "from 1"});
  expect_refused({"inspect", "--context=0"}, {"--context", "from 1"});
  expect_refused({"memory", "--tokens=0"}, {"--tokens", "from 1"});
  expect_refused({"parse", "--chunks=-1"}, {"--chunks", "from 0"});
  const Words trace = {"trace", "--ids", "i", "-o", "o"};
  for (const Words& words : std::vector<Words>{{"--chunk", "-1", "from 0"},
                                               {"--decode-from", "0", "from 1"},
                                               {"--index-scores", "f16", "bf16"}}) {
    Words line = trace;
    line.push_back(words[0] + "=" + words[1]);
    expect_refused(line, words);
  }
}

TEST(OptionsTest, SixteenStopTextsAreTheMost) {
  Words words = {"run", "-p", "x"};
  for (int i = 0; i < 16; ++i) words.insert(words.end(), {"--stop", std::to_string(i)});
  EXPECT_EQ(parsed<RunOptions>(words).sampling.stop.size(), 16U);
  words.insert(words.end(), {"--stop", "At Most 16"});
  expect_refused(words, {"--stop", "At Most 16"});
}

TEST(OptionsTest, WrongUseNamesTheCommandAndItsHelp) {
  expect_refused({"run", "-p", "x", "--bogus"}, {"locket run:", "--bogus", "locket run --help"});
  expect_refused({"run", "-p", "x", "a", "b"}, {"locket run:", "b"});
  expect_refused({"dance"}, {"no command \"dance\"", "locket --help"});
  expect_refused({}, {"Usage: locket", "Commands:"});
}

TEST(OptionsTest, HelpListsEveryCommandWithALineAndAnExample) {
  const Answer answer = parse({"--help"});
  EXPECT_EQ(answer.parsed.exit_code, 0);
  EXPECT_FALSE(answer.parsed.command.has_value());
  for (const char* command :
       {"demo", "chat", "run", "inspect", "memory", "trace", "tokens", "render", "parse"}) {
    EXPECT_NE(answer.output.find(std::string("\n  ") + command + " "), std::string::npos)
        << command;
    const Answer own = parse({command, "--help"});
    EXPECT_EQ(own.parsed.exit_code, 0);
    EXPECT_NE(own.output.find("Example:\n"), std::string::npos) << command;
    EXPECT_NE(own.output.find("locket " + std::string(command)), std::string::npos) << command;
  }
  EXPECT_NE(answer.output.find("Example:\n"), std::string::npos);
}

TEST(OptionsTest, DoctorTakesWhatItLooksAt) {
  const auto options = parsed<DoctorOptions>(
      {"doctor", "folder", "--memory", "dir", "--threads", "3", "--json", "--measure"});
  EXPECT_EQ(options.model.model, "folder");
  EXPECT_EQ(options.model.memory, "dir");
  EXPECT_EQ(options.model.threads, 3U);
  EXPECT_TRUE(options.json);
  EXPECT_TRUE(options.measures);
  const auto plain = parsed<DoctorOptions>({"doctor"});
  EXPECT_TRUE(plain.model.model.empty());
  EXPECT_FALSE(plain.json);
  EXPECT_FALSE(plain.measures);
  expect_refused({"doctor", "--threads", "1025"}, {"--threads", "0 to 1024"});
}

TEST(OptionsTest, HelpFitsAHundredColumns) {
  for (const char* command : {"demo", "chat", "run", "inspect", "memory", "trace", "tokens",
                              "render", "parse", "doctor"}) {
    std::istringstream lines(parse({command, "--help"}).output);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100U) << line;
  }
}

TEST(OptionsTest, VersionIsPrintedAlone) {
  const Answer answer = parse({"--version"});
  EXPECT_EQ(answer.parsed.exit_code, 0);
  EXPECT_EQ(answer.output.find("locket "), 0U);
  EXPECT_NE(answer.output.find('.'), std::string::npos);
}

}  // namespace
}  // namespace locket::cli
