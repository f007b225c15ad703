"""Every rule of check_sizes.py fires on a small bad sample and not on a good one."""

import unittest

from sample_tree import SampleTreeTest  # first: it makes tools/ importable

import check_sizes
import cpp_functions
import cpp_source


def functions_of(text):
    tokens = cpp_source.parse(text).tokens()
    return cpp_functions.find_functions(tokens), tokens


def function_with(statements, name="f"):
    return f"void {name}() {{\n" + "".join(f"  {line}\n" for line in statements) + "}\n"


class CheckSizesTest(SampleTreeTest):
    def expect(self, path, text, *places):
        """The file gives exactly the findings `places`: (line, rule)."""
        self.write(path, text)
        found = self.places(check_sizes.check(self.root))
        self.assertEqual(found, [(path, line, rule) for line, rule in places])
        (self.root / path).unlink()

    def test_limits_the_lines_of_a_file(self):
        for path, limit in [("src/base/a.cc", 400), ("tests/base/a_test.cc", 600),
                            ("tools/a.py", 400), ("tests/tools/a_test.py", 600)]:
            with self.subTest(path=path):
                self.expect(path, "\n" * limit)
                self.expect(path, "\n" * (limit + 1), (limit + 1, "file-length"))

    def test_limits_the_columns_of_a_line_by_characters(self):
        self.expect("src/base/a.cc", "//" + "ü" * 98 + "\n")
        self.expect("src/base/a.cc", "\n//" + "ü" * 99 + "\n", (2, "line-length"))
        self.expect("tools/a.py", "#" * 101 + "\n", (1, "line-length"))

    def test_leaves_raw_strings_their_long_lines(self):
        self.expect("tests/a_test.cc", 'auto x = R"(' + "x" * 200 + ')";\n')

    def test_limits_the_lines_of_a_function(self):
        self.expect("src/base/a.cc", function_with(["x();"] * 58))
        self.expect("src/base/a.cc", "\n" + function_with(["x();"] * 59), (2, "function-length"))

    def test_gives_kernels_tests_and_tables_a_hundred_lines(self):
        table = ["switch (x) {", *['case 1: return "a";'] * 94, "}", "return 0;"]
        for path, lines in [("src/kernels/a.cc", ["x();"] * 98), ("tests/a.cc", ["x();"] * 98),
                            ("src/base/a.cc", table)]:
            with self.subTest(path=path):
                self.expect(path, function_with(lines))
                self.expect(path, function_with([*lines, "", ""]), (1, "function-length"))

    def test_limits_parameters_in_declarations_and_definitions(self):
        six = ",\n".join(f"std::map<int, int> p{i} = {{1, 2}}" for i in range(6))
        for end in (";", " {}"):
            with self.subTest(end=end):
                self.expect("src/base/a.cc", f"void f({six}){end}\n")
                self.expect("src/base/a.cc", f"\nvoid f({six}, int q){end}\n", (2, "parameters"))

    def test_counts_the_parameters_of_constructors_operators_and_templates(self):
        seven = ", ".join(f"int p{i}" for i in range(7))
        self.expect("src/base/a.cc", "class A {\n public:\n  explicit A(" + seven + ") : a_{1} {}\n"
                    "  void operator()(" + seven + ") const;\n  int a_;\n};\n"
                    "template <class T>\nvoid f(" + seven + ");\n",
                    (3, "parameters"), (4, "parameters"), (8, "parameters"))

    def test_refuses_bool_parameters_in_public_functions_of_headers(self):
        for text in ("void f(bool on);", "void f(int a, const bool on = true);", "void f(bool);",
                     "struct S { S(bool on); };", "class C { public: void f(bool on); };"):
            with self.subTest(text=text):
                self.expect("src/base/a.h", text, (1, "bool-parameter"))

    def test_allows_bool_where_no_public_function_takes_it(self):
        for path, text in [("src/base/a.cc", "void f(bool on) {}"),
                           ("src/server/internal/a.h", "void f(bool on);"),
                           ("tests/a.h", "void f(bool on);"),
                           ("src/base/a.h", "class C { void f(bool on); };"),
                           ("src/base/a.h", "class C { public: bool f(); private: C(bool on); };"),
                           ("src/base/a.h", "bool f(boolean x, std::vector<bool> y);"),
                           ("src/base/a.h", "struct S { bool on = f(true); };")]:
            with self.subTest(text=text):
                self.expect(path, text)

    def test_limits_the_nesting_of_control_statements(self):
        for head in ("if (a)", "for (;;)", "while (a)", "switch (a)"):
            with self.subTest(head=head):
                self.expect("src/base/a.cc",
                            function_with([f"{head} {{ if (b) {{ for (;;) x(); }} }}"]))
                self.expect("src/base/a.cc",
                            function_with([f"{head} {{", "if (b) {", "for (;;) {", "while (c) x();",
                                           "}", "}", "}"]), (5, "nesting"))

    def test_counts_nesting_without_braces_in_do_else_and_lambdas(self):
        for statement in ("do for (;;) if (a) if (b) x(); while (c);",
                          "if (a) x(); else for (;;) if (b) if (c) y();",
                          "run(1, [&](int i) { for (;;) if (a) if (b) if (c) x(i); });",
                          "auto f = [] { for (;;) if (a) if (b) if (c) x(); };",
                          "if (a) [[likely]] { if (b) for (;;) if (c) x(); }",
                          "case 1: for (;;) for (;;) for (;;) for (;;) x(y[z[i]]);"):
            with self.subTest(statement=statement):
                self.expect("src/base/a.cc", function_with([statement]), (2, "nesting"))

    def test_an_else_if_chain_is_one_level(self):
        chain = "\nelse ".join(f"if (a == {i}) x({{{i}, y[z[{i}]]}});" for i in range(9))
        self.expect("src/base/a.cc", function_with([f"for (;;) if (b) {{ {chain} }}"]))

    def test_open_tasks_carry_the_number_of_an_issue(self):
        word = "TO" "DO"
        self.expect("src/base/a.cc", f"// {word}(#12): later\n")
        self.expect("src/base/a.cc", f'auto text = "{word}";\n')
        self.expect("src/base/a.cc", f"\n/* x\n {word}: later */\n", (3, "open-task"))
        self.expect("tools/a.py", f"# {word} later\n", (1, "open-task"))
        self.expect("bench/a.cc", "// FIX" "ME(somebody)\n", (1, "open-task"))

    def test_data_of_tests_is_not_code(self):
        self.expect("tests/data/a.py", "#" * 200 + "\n")


class CppFunctionsTest(unittest.TestCase):
    def test_finds_names_lines_and_parameters(self):
        found, _ = functions_of("""namespace a::b {
template <class T, class U = std::array<int, 3>>
[[nodiscard]] Result<std::function<void(int)>> first(T x, std::function<int(int, int)> g = {}) {
  return [=](int y) { return g(x, y); };
}
bool operator==(const A& a, const A& b) { return a[b[0]] == b; }
struct S final : Base<int> {
  S() noexcept : a_{1}, b_(2) { x(); }
  void (*pointer)(int a, int b) = nullptr;
  int array[3] = {f(1), 2, 3};
};
enum class E : int { kA = f(1), kB };
constexpr auto kLambda = [](int a) { return a; };
}  // namespace a::b
extern "C" { void c_function(void); }
""")
        self.assertEqual([(f.name, f.line, f.end_line, len(f.parameters)) for f in found],
                         [("first", 3, 5, 2), ("operator==", 6, 6, 2), ("S", 8, 8, 0),
                          ("pointer", 9, 0, 2), ("c_function", 15, 0, 0)])

    def test_measures_the_deepest_nesting(self):
        found, tokens = functions_of("void f() {\n  if (a) {\n    for (auto& x : {1, 2}) y({x});\n"
                                     "  }\n  while (b) {\n  }\n}\n")
        self.assertEqual(cpp_functions.nesting(tokens, found[0]), (2, 3))


class CppSourceTest(unittest.TestCase):
    def test_empties_comments_and_literals_and_keeps_lines(self):
        source = cpp_source.parse('a = "x // y"; // c\n/* d\n e */ b = \'"\'; n = 1\'000;\n'
                                  'r = R"x(1\n)" 2)x"; u8"\\""; #include "f.h"\n')
        self.assertEqual(source.code, ['a = "";  ', " ", " b = ''; n = 1'000;", 'r = ""',
                                       '; u8""; #include ""', ""])
        self.assertEqual(source.comments, [(1, "// c"), (2, "/* d"), (3, " e */")])
        self.assertEqual(source.raw_string_lines, {4, 5})

    def test_keeps_the_names_of_included_files(self):
        self.assertEqual(cpp_source.parse('#include "a/b.h"  // x').code, ['#include "a/b.h"   '])

    def test_leaves_out_preprocessor_lines_with_their_continuations(self):
        tokens = cpp_source.parse("#define A(x) \\\n  if (x) {\nint b;\n").tokens()
        self.assertEqual([(t.text, t.line) for t in tokens], [("int", 3), ("b", 3), (";", 3)])


if __name__ == "__main__":
    unittest.main()
