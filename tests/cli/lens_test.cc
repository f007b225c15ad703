// What `locket lens` computes and shows: against logits that are taken from a trace of the model,
// and on readings made by hand.
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "base/file.h"
#include "cli/lens_guesses.h"
#include "cli/lens_page.h"
#include "cli/lens_text.h"
#include "engine/session.h"
#include "engine/trace_recorder.h"
#include "tests/cli/program_cases.h"
#include "tests/support/tiny_models.h"

namespace locket::cli {
namespace {

using engine::TokenId;
using nlohmann::json;
using test_support::run_program;

const model::V41Model& micro() {
  return test_support::tiny_model("micro", model::NumericsMode::kReference);
}

constexpr std::uint64_t kPoolBytes = std::uint64_t{16} << 20;

// Longer than a slice and than a chunk of rows.
std::vector<TokenId> sample_ids() { return test_support::random_ids(5, 150, 480); }

Result<LensReading> read_micro(std::span<const TokenId> ids) {
  cache::PagePool pool(micro().layout().page_bytes(), kPoolBytes);
  WorkerPool workers(2);
  return read_layers(micro(), pool, workers, ids);
}

LensReading micro_reading() {
  auto reading = read_micro(sample_ids());
  EXPECT_TRUE(reading) << reading.error().message;
  return *reading;
}

// Logits, streams and pre of every position, by a session of its own.
std::map<std::string, engine::TraceTensor> micro_trace() {
  engine::TraceRecorder recorder({engine::TraceKind::kLogits, engine::TraceKind::kStreams},
                                 micro().shape().stream_count);
  cache::PagePool pool(micro().layout().page_bytes(), kPoolBytes);
  WorkerPool workers(1);
  engine::Session session(micro(), pool, workers,
                          {.replay = engine::ReplayMode::kFull, .observer = &recorder});
  EXPECT_TRUE(session.prefill(sample_ids()));
  return recorder.tensors();
}

// The same numbers by another way: probabilities first, then sums over them.
void expect_guess(const LayerGuess& guess, std::span<const float> logits, TokenId next) {
  const auto most = std::ranges::max_element(logits);
  EXPECT_EQ(guess.token, most - logits.begin());
  long double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<long double>(logit));
  long double entropy = 0;
  for (const float logit : logits) {
    const long double probability = std::exp(static_cast<long double>(logit)) / sum;
    if (probability > 0) entropy -= probability * std::log2(probability);
  }
  EXPECT_NEAR(guess.probability,
              static_cast<double>(std::exp(static_cast<long double>(*most)) / sum), 1e-6);
  EXPECT_NEAR(guess.entropy_bits, static_cast<double>(entropy), 1e-4);
  const double expected_next =
      next < 0
          ? 0
          : static_cast<double>(
                std::exp(static_cast<long double>(logits[static_cast<std::size_t>(next)])) / sum);
  EXPECT_NEAR(guess.next_probability, expected_next, 1e-6);
}

TEST(LensGuessesTest, TheLastLayerSaysWhatTheModelSays) {
  const LensReading reading = micro_reading();
  const auto trace = micro_trace();
  const engine::TraceTensor& logits = trace.at("logits");
  ASSERT_EQ(logits.shape[0], 150);
  const auto width = static_cast<std::size_t>(logits.shape[1]);
  for (std::size_t at = 0; at < reading.positions(); ++at) {
    const TokenId next = at + 1 < reading.positions() ? reading.tokens[at + 1] : -1;
    expect_guess(reading.layers.back()[at], std::span(logits.floats).subspan(at * width, width),
                 next);
  }
}

TEST(LensGuessesTest, ALayerBetweenSaysWhatItsRowsGiveInTheHead) {
  const LensReading reading = micro_reading();
  const auto trace = micro_trace();
  WorkerPool workers(1);
  for (const std::size_t layer : {0U, 3U, 7U}) {
    const auto& streams = trace.at("layer." + std::to_string(layer) + ".streams");
    const auto& pre = trace.at("layer." + std::to_string(layer) + ".pre");
    constexpr std::size_t kAt = 140;  // in the second slice
    const std::size_t width = streams.floats.size() / 150;
    const std::size_t pre_width = pre.floats.size() / 150;
    model::ResidualRows row = {.streams = {1, width}, .pre = {1, pre_width}};
    std::copy_n(streams.floats.begin() + kAt * width, width, row.streams.values().begin());
    std::copy_n(pre.floats.begin() + kAt * pre_width, pre_width, row.pre.values().begin());
    model::ForwardContext context = micro().make_context(workers);
    const tensor::FloatMatrix logits = micro().logits(context, row);
    expect_guess(reading.layers[layer][kAt], logits.row(0), reading.tokens[kAt + 1]);
  }
}

TEST(LensGuessesTest, NeedsTwoTokensThatTheModelKnows) {
  const auto one = read_micro(std::array<TokenId, 1>{3});
  ASSERT_FALSE(one);
  EXPECT_EQ(one.error().code, ErrorCode::kBadRequest);
  const auto unknown = read_micro(std::array<TokenId, 3>{3, 480, 4});
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().message.find("480"), std::string::npos) << unknown.error().message;
}

// Three tokens, two layers: the first one is right once, the last one twice.
LensReading small_reading() {
  return {
      .generation = "V4.1",
      .tokens = {7, 8, 9},
      .layers = {{{.token = 8, .probability = 0.5, .next_probability = 0.5, .entropy_bits = 2},
                  {.token = 8, .probability = 0.5, .next_probability = 0.125, .entropy_bits = 4},
                  {.token = 1, .probability = 0.75, .next_probability = 0, .entropy_bits = 9}},
                 {{.token = 8, .probability = 1, .next_probability = 1, .entropy_bits = 0},
                  {.token = 9, .probability = 0.5, .next_probability = 0.5, .entropy_bits = 1},
                  {.token = 1, .probability = 0.75, .next_probability = 0, .entropy_bits = 9}}}};
}

TEST(LensGuessesTest, ScoresLeaveTheLastPositionOut) {
  const LayerScore first = small_reading().score(0);
  EXPECT_DOUBLE_EQ(first.right, 0.5);
  EXPECT_DOUBLE_EQ(first.loss_bits, 2);
  EXPECT_DOUBLE_EQ(first.entropy_bits, 3);
  EXPECT_DOUBLE_EQ(first.as_last, 0.5);
  const LayerScore last = small_reading().score(1);
  EXPECT_DOUBLE_EQ(last.right, 1);
  EXPECT_DOUBLE_EQ(last.loss_bits, 0.5);
  EXPECT_DOUBLE_EQ(last.as_last, 1);
}

tokenizer::Tokenizer mini_tokenizer() {
  return tokenizer::Tokenizer::load(std::filesystem::path(mini_folder()) / "tokenizer.json")
      .value();
}

TEST(LensTextTest, MarksGuessesThatComeAndFitsAHundredColumns) {
  const tokenizer::Tokenizer tokenizer = mini_tokenizer();
  const std::string text = lens_guesses(small_reading(), tokenizer, 2);
  const auto lines = lines_of(text);
  ASSERT_EQ(lines.size(), 5U) << text;
  EXPECT_EQ(lines[0].find("token"), 3U) << text;
  EXPECT_EQ(std::ranges::count(lines[1], '='), 1) << text;  // position 1: the last layer is right
  EXPECT_EQ(std::ranges::count(lines[2], '='), 0) << text;
  LensReading deep = small_reading();
  deep.layers.assign(43, deep.layers.front());
  for (const std::string& line : lines_of(lens_guesses(deep, tokenizer, 100))) {
    EXPECT_LE(line.size(), 130U) << line;  // bytes; some characters have more than one
  }
  EXPECT_NE(lens_guesses(deep, tokenizer, 1).find("layer 42"), std::string::npos);
}

// The text between two markers of the page.
std::string between(const std::string& page, const std::string& begin, const std::string& end) {
  const std::size_t at = page.find(begin);
  EXPECT_NE(at, std::string::npos) << begin;
  if (at == std::string::npos) return {};
  const std::size_t from = at + begin.size();
  return page.substr(from, page.find(end, from) - from);
}

TEST(LensPageTest, HoldsEveryGuessAndNeedsNoOtherFile) {
  const std::string page = lens_page(small_reading(), mini_tokenizer(), "a <b> & c");
  const json data =
      json::parse(between(page, "<script type=\"application/json\" id=\"data\">", "</script>"));
  EXPECT_EQ(data.at("tokens"), (std::vector<int>{7, 8, 9}));
  EXPECT_EQ(data.at("layers").size(), 2U);
  EXPECT_EQ(data.at("layers")[0].at("token"), (std::vector<int>{8, 8, 1}));
  EXPECT_EQ(data.at("layers")[1].at("next"), (std::vector<int>{1000, 500, 0}));
  EXPECT_EQ(data.at("layers")[1].at("doubt"), (std::vector<int>{0, 100, 900}));
  EXPECT_TRUE(data.at("texts").contains("9"));
  EXPECT_NE(page.find("a &lt;b&gt; &amp; c"), std::string::npos);
  for (const char* part : {"http:", "https:", "src=", "href=", "@import", "url("}) {
    EXPECT_EQ(page.find(part), std::string::npos) << part;
  }
  for (const char* part : {"prefers-color-scheme: dark", "ArrowLeft", "name=\"viewport\"",
                           "aria-live=\"polite\"", "50.0 %", "100.0 %"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part;
  }
}

TEST(LensPageTest, TextsOfTokensNeverBecomeMarkup) {
  const tokenizer::Tokenizer tokenizer = mini_tokenizer();
  const auto ids = tokenizer.encode_text("</script><script>alert(1)</script> x");
  LensReading reading = small_reading();
  reading.tokens.assign(ids.begin(), ids.end());
  reading.layers = {std::vector<LayerGuess>(ids.size())};
  const std::string page = lens_page(reading, tokenizer, "text");
  const std::string data =
      between(page, "<script type=\"application/json\" id=\"data\">", "</script>");
  EXPECT_EQ(data.find('<'), std::string::npos);
  EXPECT_TRUE(json::parse(data).contains("texts"));
}

TEST(LensPageTest, ShowsWhatCannotBeSeen) {
  const tokenizer::Tokenizer tokenizer = mini_tokenizer();
  const auto text_of = [&](std::string_view text) {
    std::string shown;
    for (const TokenId id : tokenizer.encode_text(text)) shown += visible_token(tokenizer, id);
    return shown;
  };
  EXPECT_EQ(text_of("a b\n"), "a·b⏎");
  EXPECT_EQ(text_of(std::string("\x01", 1)), "\\x01");
  EXPECT_EQ(visible_token(tokenizer, 1 << 20), "#1048576");
}

TEST(LensCommandTest, GuessesOfTheSmallModelGetBetterWithDepth) {
  const test_support::TempFolder folder;
  const auto page = folder / "lens.html";
  const auto result = run_program({"lens", mini_folder(), "--json", "--html", page.string()});
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const json layers = json::parse(result.output).at("layers");
  ASSERT_EQ(layers.size(), 10U);
  EXPECT_GT(layers.back().at("next_right"), 0.5);
  EXPECT_GT(layers.back().at("next_right").get<double>(),
            layers.front().at("next_right").get<double>() + 0.2);
  EXPECT_LT(layers.back().at("loss_bits").get<double>(),
            layers.front().at("loss_bits").get<double>() - 2);
  EXPECT_EQ(layers.back().at("as_last"), 1);
  EXPECT_NE(read_whole_file(page).value().find("What each layer would say"), std::string::npos);
}

TEST(LensCommandTest, TakesATextMessagesOrIds) {
  const test_support::TempFolder folder;
  const auto ids = folder.write("ids.json", "[0, 5, 6, 7]");
  const auto messages =
      folder.write("chat.json", R"({"messages": [{"role": "user", "content": "Hello!"}]})");
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"-p", "My cat is called Milo."},
                                             {"--messages", messages.string()},
                                             {"--ids", ids.string()}}) {
    std::vector<std::string> line = {"lens", mini_folder(), "--rows", "2"};
    line.insert(line.end(), words.begin(), words.end());
    const auto result = run_program(line);
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    expect_parts(result.output, {"layer 0", "layer 9", "next token right", "doubt"});
  }
}

TEST(LensCommandTest, SaysWhatIsWrong) {
  const test_support::TempFolder folder;
  const auto ids = folder.write("ids.json", "[0, 99999]");
  expect_failure(run_program({"lens", mini_folder(), "--ids", ids.string()}), {"99999"});
  expect_failure(run_program({"lens", "--html", (folder / "no/such.html").string()}), {"--html"});
  expect_failure(run_program({"lens", tiny_folder("micro")}), {"recall.json", "--ids"});
}

}  // namespace
}  // namespace locket::cli
