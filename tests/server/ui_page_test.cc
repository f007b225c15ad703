#include "server/ui_page.h"

#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <regex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "cli/base64.h"

namespace locket::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::map<std::string, std::string> headers_of(const HttpResponse& response) {
  return {response.headers.begin(), response.headers.end()};
}

// The texts between every `open` (up to its ">") and `close`.
std::vector<std::string> contents(const std::string& page, const std::string& open,
                                  const std::string& close) {
  std::vector<std::string> found;
  for (std::size_t at = page.find(open); at != std::string::npos; at = page.find(open, at + 1)) {
    const std::size_t begin = page.find('>', at) + 1;
    found.push_back(page.substr(begin, page.find(close, begin) - begin));
  }
  return found;
}

std::string source_of(const std::string& text) {
  const Sha256Digest digest = sha256(std::as_bytes(std::span(text)));
  std::string bytes(digest.size(), '\0');
  std::memcpy(bytes.data(), digest.data(), digest.size());
  return "'sha256-" + cli::encode_base64(bytes) + "'";
}

// The sources that the policy names for a kind of content.
std::vector<std::string> directive(const std::string& policy, const std::string& name) {
  std::smatch match;
  if (!std::regex_search(policy, match, std::regex("(?:^|; )" + name + " ([^;]*)"))) return {};
  std::vector<std::string> sources;
  const std::string text = match[1];
  const std::regex word("[^ ]+");
  for (std::sregex_iterator at(text.begin(), text.end(), word), end; at != end; ++at) {
    sources.push_back(at->str());
  }
  return sources;
}

TEST(UiPageTest, ThePolicyNamesTheStyleAndTheScriptOfThePage) {
  const HttpResponse response = ui_page();
  const std::string policy = headers_of(response)["Content-Security-Policy"];
  const auto styles = contents(response.body, "<style", "</style>");
  const auto scripts = contents(response.body, "<script", "</script>");
  ASSERT_EQ(styles.size(), 1U);
  ASSERT_EQ(scripts.size(), 1U);
  EXPECT_GT(styles[0].size(), 1000U);
  EXPECT_GT(scripts[0].size(), 1000U);
  EXPECT_THAT(directive(policy, "style-src"), ElementsAre(source_of(styles[0])));
  EXPECT_THAT(directive(policy, "script-src"), ElementsAre(source_of(scripts[0])));
}

TEST(UiPageTest, ThePolicyAllowsNothingElse) {
  const std::string policy = headers_of(ui_page())["Content-Security-Policy"];
  for (const std::string name : {"default-src", "base-uri", "form-action", "frame-ancestors"}) {
    EXPECT_THAT(directive(policy, name), ElementsAre("'none'")) << name;
  }
  EXPECT_THAT(directive(policy, "connect-src"), ElementsAre("'self'"));
  EXPECT_THAT(directive(policy, "img-src"), ElementsAre("data:"));
  EXPECT_THAT(directive(policy, "require-trusted-types-for"), ElementsAre("'script'"));
  EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
  EXPECT_THAT(policy, Not(HasSubstr("*")));
}

TEST(UiPageTest, OtherHeadersKeepThePageToItself) {
  const HttpResponse response = ui_page();
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.content_type, "text/html; charset=utf-8");
  auto headers = headers_of(response);
  EXPECT_EQ(headers["X-Content-Type-Options"], "nosniff");
  EXPECT_EQ(headers["X-Frame-Options"], "DENY");
  EXPECT_EQ(headers["Referrer-Policy"], "no-referrer");
  EXPECT_EQ(headers["Cache-Control"], "no-cache");
}

TEST(UiPageTest, NamesNoOtherPlace) {
  const std::string page = ui_page().body;
  const std::regex address("(?:[a-z]+:)?//[a-z0-9.-]+\\.[a-z]{2,}", std::regex::icase);
  std::vector<std::string> found;
  for (std::sregex_iterator at(page.begin(), page.end(), address), end; at != end; ++at) {
    if (at->str() != "http://www.w3.org") found.push_back(at->str());  // names of SVG
  }
  EXPECT_THAT(found, ElementsAre());
  EXPECT_THAT(page, Not(HasSubstr("@import")));
  EXPECT_THAT(page, Not(HasSubstr("url(")));
  EXPECT_THAT(page, Not(HasSubstr(" src=")));
}

TEST(UiPageTest, HoldsNothingThatThePolicyWouldStop) {
  const std::string page = ui_page().body;
  const std::string markup =
      page.substr(page.find("<body"), page.find("<script") - page.find("<body"));
  EXPECT_FALSE(std::regex_search(markup, std::regex(" on[a-z]+=")));
  EXPECT_THAT(markup, Not(HasSubstr(" style=")));
  for (const std::string_view word :
       {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("}) {
    EXPECT_THAT(page, Not(HasSubstr(std::string(word))));
  }
}

TEST(UiPageTest, EveryElementThatTheScriptAsksForIsThere) {
  const std::string page = ui_page().body;
  const std::string script = contents(page, "<script", "</script>").at(0);
  const std::regex use("byId\\(\"([a-z-]+)\"\\)");
  std::size_t uses = 0;
  for (std::sregex_iterator at(script.begin(), script.end(), use), end; at != end; ++at) {
    EXPECT_THAT(page, HasSubstr("id=\"" + (*at)[1].str() + "\""));
    ++uses;
  }
  EXPECT_GT(uses, 20U);
}

TEST(UiPageTest, IsSmall) { EXPECT_LT(ui_page().body.size(), std::size_t{64} * 1024); }

}  // namespace
}  // namespace locket::server
