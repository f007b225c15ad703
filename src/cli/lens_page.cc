#include "cli/lens_page.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

namespace locket::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kStyle = R"page(
:root { color-scheme: light dark; --ground: #f7f6f2; --card: #ffffff; --line: #dedbd2;
  --text: #1f2430; --quiet: #5d6472; --heat: 11 98 168; --mark: #8a4b00; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #121417; --card: #1b1e23; --line: #343a43; --text: #e9ecf1;
    --quiet: #a3abb8; --heat: 70 150 235; --mark: #ffc069; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1400px; padding: 16px; background: var(--ground);
  color: var(--text); font: 15px/1.45 system-ui, "Segoe UI", Roboto, "Noto Sans", sans-serif;
  font-variant-numeric: tabular-nums; }
h1 { font-size: 1.25rem; margin: 0 0 4px; }
h2 { font-size: 1.05rem; margin: 22px 0 6px; }
p { margin: 0 0 8px; max-width: 75ch; color: var(--quiet); }
.scroll { overflow: auto; border: 1px solid var(--line); border-radius: 8px;
  background: var(--card); }
table { border-collapse: collapse; width: 100%; min-width: 34rem; }
th, td { padding: 3px 10px; text-align: right; border-bottom: 1px solid var(--line); }
th { font-weight: 600; }
th:first-child, td:first-child { text-align: left; }
.bar { display: inline-block; width: 6rem; height: .7rem; margin-left: .5rem; border-radius: 3px;
  background: linear-gradient(rgb(var(--heat)) 0 0) 0 0 / calc(var(--share) * 100%) 100% no-repeat,
    var(--line); }
label { display: inline-flex; gap: 8px; align-items: center; margin-bottom: 8px; }
select { font: inherit; color: inherit; background: var(--card); min-height: 36px;
  border: 1px solid var(--line); border-radius: 8px; padding: 0 8px; }
#grid { max-height: 76vh; }
.row { display: grid; grid-template-columns: 3.2rem 7rem repeat(var(--layers), 5.6rem);
  width: max-content; content-visibility: auto; contain-intrinsic-size: auto 1.8rem; }
.head { position: sticky; top: 0; z-index: 2; content-visibility: visible; font-weight: 600; }
.row > * { padding: 2px 6px; border-bottom: 1px solid var(--line); white-space: pre;
  overflow: hidden; text-overflow: ellipsis; background-color: var(--card); }
.row > :nth-child(2) { position: sticky; left: 0; z-index: 1; font-weight: 600;
  border-right: 1px solid var(--line); }
.row > :first-child { color: var(--quiet); text-align: right; }
.cell { background-image: linear-gradient(rgb(var(--heat) / var(--shade)) 0 0); cursor: pointer; }
.right { font-weight: 700; text-decoration: underline; text-underline-offset: 3px;
  text-decoration-thickness: 2px; }
.cell:focus { outline: 3px solid var(--mark); outline-offset: -3px; }
#told { position: sticky; bottom: 0; margin: 8px 0 0; padding: 10px 14px; min-height: 3.9rem;
  max-width: none; color: var(--text); background: var(--card); border: 1px solid var(--line);
  border-radius: 8px; z-index: 3; }
@media (max-width: 640px) {
  body { padding: 10px; }
  .row { grid-template-columns: 2.6rem 5.4rem repeat(var(--layers), 4.6rem); }
}
)page";

constexpr std::string_view kScript = R"page(
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const grid = document.getElementById("grid");
const told = document.getElementById("told");
const shading = document.getElementById("shading");
const text = (id) => data.texts[id] ?? "#" + id;
const shades = {
  next: (layer, at) => layer.next[at] / 1000,
  own: (layer, at) => layer.own[at] / 1000,
  sure: (layer, at) => 1 - Math.min(1, layer.doubt[at] / 100 / data.most_bits),
};
const cells = [];

function element(kind, name, content) {
  const made = document.createElement("div");
  made.setAttribute("role", kind);
  made.className = name;
  made.textContent = content;
  return made;
}

function add_head() {
  const row = element("row", "row head", "");
  const names = ["", "read", ...data.layers.map((_, layer) => "layer " + layer)];
  for (const name of names) row.append(element("columnheader", "", name));
  grid.append(row);
}

function add_row(at) {
  const row = element("row", "row", "");
  row.append(element("rowheader", "", String(at)));
  row.append(element("rowheader", "", text(data.tokens[at])));
  cells.push(data.layers.map((layer, number) => {
    const is_right = layer.token[at] === data.tokens[at + 1];
    const cell = element("gridcell", is_right ? "cell right" : "cell", text(layer.token[at]));
    cell.tabIndex = at === 0 && number === 0 ? 0 : -1;
    cell.dataset.at = at;
    cell.dataset.layer = number;
    row.append(cell);
    return cell;
  }));
  grid.append(row);
}

function shade() {
  const shade_of = shades[shading.value];
  cells.forEach((row, at) => row.forEach((cell, layer) => {
    cell.style.setProperty("--shade", (0.6 * shade_of(data.layers[layer], at)).toFixed(3));
  }));
}

function tell(cell) {
  const at = Number(cell.dataset.at);
  const number = Number(cell.dataset.layer);
  const layer = data.layers[number];
  const percent = (mills) => (mills / 10).toFixed(1) + " %";
  const next = at + 1 < data.tokens.length
    ? `What comes is “${text(data.tokens[at + 1])}”, to which it gives ${percent(layer.next[at])}. `
    : "Here the text ends. ";
  told.textContent = `After token ${at}, “${text(data.tokens[at])}”, layer ${number} would say ` +
    `“${text(layer.token[at])}” with ${percent(layer.own[at])}. ${next}` +
    `Its doubt: ${(layer.doubt[at] / 100).toFixed(2)} bits.`;
}

function cell_of(event) {
  return event.target.closest ? event.target.closest(".cell") : null;
}

function move(event) {
  const cell = cell_of(event);
  const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
    PageUp: [-20, 0], PageDown: [20, 0], Home: [0, -data.layers.length],
    End: [0, data.layers.length] };
  const step = steps[event.key];
  if (!cell || !step || event.altKey || event.metaKey) return;
  const far = event.ctrlKey ? cells.length : 1;
  const clamp = (value, count) => Math.max(0, Math.min(count - 1, value));
  const to = cells[clamp(Number(cell.dataset.at) + step[0] * far, cells.length)][
    clamp(Number(cell.dataset.layer) + step[1], data.layers.length)];
  event.preventDefault();
  cell.tabIndex = -1;
  to.tabIndex = 0;
  to.focus();
  to.scrollIntoView({ block: "nearest", inline: "nearest" });
}

grid.style.setProperty("--layers", data.layers.length);
add_head();
data.tokens.forEach((_, at) => add_row(at));
shade();
shading.addEventListener("change", shade);
grid.addEventListener("keydown", move);
for (const name of ["focusin", "mouseover"]) {
  grid.addEventListener(name, (event) => { if (cell_of(event)) tell(cell_of(event)); });
}
grid.addEventListener("click", (event) => {
  const cell = cell_of(event);
  if (!cell) return;
  for (const row of cells) for (const other of row) other.tabIndex = -1;
  cell.tabIndex = 0;
  cell.focus();
});
)page";

std::string escaped(std::string_view text) {
  std::string out;
  for (const char letter : text) {
    switch (letter) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      default:
        out += letter;
    }
  }
  return out;
}

int parts(double value, double per_unit) { return static_cast<int>(std::lround(value * per_unit)); }

Json layer_json(const std::vector<LayerGuess>& guesses, std::set<engine::TokenId>& used) {
  Json token = Json::array();
  Json own = Json::array();
  Json next = Json::array();
  Json doubt = Json::array();
  for (const LayerGuess& guess : guesses) {
    used.insert(guess.token);
    token.push_back(guess.token);
    own.push_back(parts(guess.probability, 1000));
    next.push_back(parts(guess.next_probability, 1000));
    doubt.push_back(parts(guess.entropy_bits, 100));
  }
  return {{"token", std::move(token)},
          {"own", std::move(own)},
          {"next", std::move(next)},
          {"doubt", std::move(doubt)}};
}

// Nothing in it ends the element that holds it.
std::string data_json(const LensReading& reading, const tokenizer::Tokenizer& tokenizer) {
  std::set<engine::TokenId> used(reading.tokens.begin(), reading.tokens.end());
  Json layers = Json::array();
  for (const auto& guesses : reading.layers) layers.push_back(layer_json(guesses, used));
  Json texts = Json::object();
  for (const engine::TokenId id : used) texts[std::to_string(id)] = visible_token(tokenizer, id);
  const double most_bits =
      std::log2(static_cast<double>(std::max<std::size_t>(2, tokenizer.vocabulary_size())));
  const Json data = {{"tokens", reading.tokens},
                     {"texts", std::move(texts)},
                     {"most_bits", most_bits},
                     {"layers", std::move(layers)}};
  std::string text = data.dump(-1, ' ', false, Json::error_handler_t::replace);
  for (std::size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at)) {
    text.replace(at, 1, "\\u003c");
  }
  return text;
}

// Names of control tokens hold wide bars and blocks, which many fonts do not have.
std::string plain_control_name(std::string_view entry) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kPlain = {
      {{"｜", "|"}, {"▁", "_"}}};
  std::string name(entry);
  for (const auto& [wide, plain] : kPlain) {
    for (std::size_t at = name.find(wide); at != std::string::npos; at = name.find(wide, at)) {
      name.replace(at, wide.size(), plain);
    }
  }
  return name;
}

std::string bar(double share) {
  return fmt::format("<span class=\"bar\" style=\"--share:{:.3f}\"></span>", share);
}

std::string score_table(const LensReading& reading) {
  double most_bits = 1e-9;
  std::vector<LayerScore> scores;
  for (std::size_t layer = 0; layer < reading.layers.size(); ++layer) {
    scores.push_back(reading.score(layer));
    most_bits = std::max({most_bits, scores.back().entropy_bits, scores.back().loss_bits});
  }
  std::string text =
      "<div class=\"scroll\"><table>\n<tr><th>layer</th><th>next token right</th>"
      "<th>surprise, bits</th><th>doubt, bits</th><th>says what the last layer says</th></tr>\n";
  for (std::size_t layer = 0; layer < scores.size(); ++layer) {
    const LayerScore& score = scores[layer];
    text += fmt::format(
        "<tr><td>{}</td><td>{:.1f} %{}</td><td>{:.2f}{}</td><td>{:.2f}{}</td><td>{:.1f} "
        "%</td></tr>\n",
        layer, 100 * score.right, bar(score.right), score.loss_bits,
        bar(score.loss_bits / most_bits), score.entropy_bits, bar(score.entropy_bits / most_bits),
        100 * score.as_last);
  }
  return text + "</table></div>\n";
}

}  // namespace

std::string visible_token(const tokenizer::Tokenizer& tokenizer, engine::TokenId id) {
  constexpr std::array<std::pair<char, std::string_view>, 4> kVisible = {
      {{' ', "·"}, {'\n', "⏎"}, {'\t', "⇥"}, {'\r', "␍"}}};
  std::string bytes = tokenizer.decode_bytes({&id, 1});
  if (tokenizer.is_added_token(id)) bytes = plain_control_name(tokenizer.vocabulary_entry(id));
  if (bytes.empty()) return fmt::format("#{}", id);
  std::string text;
  for (const char letter : tokenizer::repair_utf8(bytes)) {
    const auto* const found =
        std::ranges::find(kVisible, letter, &decltype(kVisible)::value_type::first);
    if (found != kVisible.end()) {
      text += found->second;
    } else if (static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f) {
      text += fmt::format("\\x{:02X}", static_cast<unsigned char>(letter));
    } else {
      text += letter;
    }
  }
  return text;
}

std::string lens_page(const LensReading& reading, const tokenizer::Tokenizer& tokenizer,
                      const std::string& title) {
  const std::string what =
      fmt::format("{}: {} tokens, {} layers", title, reading.positions(), reading.layers.size());
  std::string page =
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src "
      "'unsafe-inline'; style-src 'unsafe-inline'\">\n<title>What each layer would say</title>\n";
  page += fmt::format("<style>{}</style>\n</head>\n<body>\n", kStyle);
  page += fmt::format("<h1>What each layer would say</h1>\n<p>{}</p>\n", escaped(what));
  page +=
      "<p>After every layer the model's last norm and its output head say what token would come "
      "next if no layer followed. Surprise is how many bits the true next token costs at a layer's "
      "probabilities, doubt the entropy of its guess; both are means over the text.</p>\n"
      "<h2>Layer by layer</h2>\n";
  page += score_table(reading);
  page +=
      "<h2>Token by token</h2>\n<p>A row is a position, a column a layer. Bold and underlined: "
      "the guess is what comes. Arrow keys move, Ctrl and an arrow goes to the end.</p>\n"
      "<label>Shade <select id=\"shading\"><option value=\"next\">chance given to what "
      "comes</option><option value=\"own\">chance of the guess</option><option "
      "value=\"sure\">certainty (no doubt)</option></select></label>\n"
      "<div class=\"scroll\" id=\"grid\" role=\"grid\" aria-label=\"Guesses by position and "
      "layer\"></div>\n<p id=\"told\" aria-live=\"polite\">Choose a cell.</p>\n"
      "<noscript><p>The table of cells needs scripts; they are part of this file.</p></noscript>\n";
  page += fmt::format("<script type=\"application/json\" id=\"data\">{}</script>\n",
                      data_json(reading, tokenizer));
  page += fmt::format("<script>{}</script>\n</body>\n</html>\n", kScript);
  return page;
}

}  // namespace locket::cli
