"""Every rule of check_rooms.py fires on a small bad sample and not on a good one."""

import unittest

from sample_tree import TOOLS, SampleTreeTest  # first: it makes tools/ importable

import check_rooms

ROOMS = ["base", "tensor", "tokenizer", "kernels", "cache", "model", "server", "cli"]
TABLE = """# locket_room(comment LEVEL 9) is not a call
function(locket_room name)
endfunction()
locket_room(base LEVEL 0 LIBRARIES fmt::fmt)
locket_room(tensor LEVEL 1 MAY_INCLUDE base)
locket_room(tokenizer LEVEL 3 MAY_INCLUDE base)
locket_room(kernels LEVEL 3 MAY_INCLUDE base tensor)
locket_room(cache LEVEL 3 MAY_INCLUDE base tensor
            LIBRARIES fmt::fmt)
locket_room(model LEVEL 4 MAY_INCLUDE base tensor kernels cache)
locket_room(server LEVEL 7 MAY_INCLUDE base)
locket_room(cli LEVEL 8 MAY_INCLUDE base tensor tokenizer kernels cache model server)
"""
HEADER = "// What it is.\n#pragma once\n"


class CheckRoomsTest(SampleTreeTest):
    def setUp(self):
        super().setUp()
        self.write("cmake/rooms.cmake", TABLE)
        self.write_readme(ROOMS)
        for room in ROOMS:
            self.write(f"src/{room}/{room}.h", HEADER)
        self.write("src/cache/kv_layout.h", HEADER)
        self.write("src/server/internal/socket.h", HEADER)

    def write_readme(self, rooms):
        self.write("src/README.md", "# Rooms\n" + "".join(f"\n## {room}\n\nText.\n"
                                                          for room in rooms))

    def found(self):
        return self.places(check_rooms.check(self.root))

    def expect(self, path, text, *places):
        """The file gives exactly the findings `places`: (line, rule)."""
        self.write(path, text)
        self.assertEqual(self.found(), [(path, line, rule) for line, rule in places])

    def test_accepts_a_tree_that_keeps_the_rules(self):
        self.write("src/base/result.h", "// Results.\n#pragma once\n#include <tl/expected.hpp>\n")
        self.write("src/base/check.h", "// Checks.\n#pragma once\n#ifdef LOCKET_DEBUG_CHECKS\n"
                                       "#else\n#endif\n")
        self.write("src/base/file.cc", "#include <fcntl.h>\n#include <fstream>\n#include <thread>\n"
                                       "int f() { return ::open(0, 0) + steady_clock::now(); }\n")
        self.write("src/base/guarded.h", "// Guarded.\n#ifndef GUARDED_H\n#define GUARDED_H\n"
                                         "#pragma once\n#endif\n")
        self.write("src/kernels/cpu/dot.cc", "#include <hwy/highway.h>\n#include <immintrin.h>\n"
                                             "#if HWY_ONCE\n#endif\n")
        self.write("src/model/layer.cc", '#include "cache/kv_layout.h"\n#include <vector>\n'
                                         '// std::cout, new, co_await in words are fine\n'
                                         'const char* kText = "printf(1) new std::thread";\n'
                                         'Checkpoint c = Checkpoint::open(path);\n'
                                         'struct A { A(const A&) = delete; };\n')
        self.write("src/server/handler.cc", "#include <boost/asio.hpp>\ntask f() { co_return; }\n")
        self.write("src/cli/print.cc",
                   "#include <iostream>\nvoid f() { std::cout << 1; exit(2); }\n")
        self.write("src/cli/text.cc", '#include "server/server.h"\n#include <fmt/format.h>\n')
        self.assertEqual(self.found(), [])

    def test_reads_the_table_with_comments_and_line_breaks(self):
        rooms = check_rooms.parse_rooms(TABLE)
        self.assertEqual([room.name for room in rooms], ROOMS)
        self.assertEqual(rooms[4].may_include, ["base", "tensor"])
        self.assertEqual((rooms[4].level, rooms[4].line), (3, 8))

    def test_the_repository_itself_has_a_table_with_levels(self):
        text = (TOOLS.parent / "cmake/rooms.cmake").read_text(encoding="utf-8")
        rooms = check_rooms.parse_rooms(text)
        self.assertGreaterEqual(len(rooms), 12)
        self.assertTrue(all(room.level >= 0 for room in rooms))

    def test_refuses_a_room_that_is_not_in_may_include(self):
        self.expect("src/tensor/a.cc", '#include "tensor/tensor.h"\n#include "cache/cache.h"\n',
                    (2, "room"))

    def test_refuses_other_cache_headers_in_the_model(self):
        self.expect("src/model/a.cc", '#include "cache/kv_layout.h"\n#include "cache/cache.h"\n',
                    (2, "room"))

    def test_refuses_a_table_that_points_up_or_sideways(self):
        self.write("cmake/rooms.cmake", TABLE.replace(
            "LEVEL 3 MAY_INCLUDE base tensor\n", "LEVEL 3 MAY_INCLUDE base kernels model\n"))
        self.assertEqual(self.found(), [("cmake/rooms.cmake", 8, "levels"),
                                        ("cmake/rooms.cmake", 8, "table")])

    def test_refuses_folders_without_a_room_and_rooms_without_a_folder(self):
        self.write("src/attic/a.cc", "")
        self.write("cmake/rooms.cmake", TABLE + "locket_room(cellar LEVEL 9)\n")
        self.write_readme([*ROOMS, "cellar"])
        self.assertEqual(self.found(), [("src/attic", 1, "table"),
                                        ("cmake/rooms.cmake", 13, "table")])

    def test_refuses_a_source_file_outside_every_room(self):
        self.expect("src/stray.cc", "", (1, "table"))

    def test_refuses_a_readme_that_names_other_rooms(self):
        for rooms in (ROOMS[:-1], [*ROOMS, "cellar"], ROOMS[::-1]):
            with self.subTest(rooms=rooms):
                self.write_readme(rooms)
                self.assertEqual(self.found(), [("src/README.md", 1, "readme")])

    def test_refuses_internal_headers_of_another_room(self):
        self.write("src/server/own.cc", '#include "server/internal/socket.h"\n')
        self.expect("src/cli/a.cc", '#include "server/internal/socket.h"\n', (1, "internal"))

    def test_refuses_includes_that_are_not_written_from_src(self):
        self.expect("src/base/a.cc", '#include "base.h"\n#include "tensor/../base/base.h"\n'
                                     "#include <base/base.h>\n",
                    (1, "include"), (2, "include"), (3, "include"))

    def test_refuses_every_library_outside_its_place(self):
        for header, good, bad in [
                ("hwy/highway.h", "kernels/cpu/a.cc", "kernels/a.cc"),
                ("hwy/highway.h", "kernels/cpu/a.cc", "kernels/cpu/a.h"),
                ("unicode/normalizer2.h", "tokenizer/engram_token_map.cc", "tokenizer/bpe.cc"),
                ("spdlog/spdlog.h", "base/log.cc", "base/file.cc"),
                ("pcre2.h", "tokenizer/pretokenizer.cc", "tokenizer/bpe.cc"),
                ("xxhash.h", "base/hash.cc", "base/file.cc"),
                ("openssl/evp.h", "base/hash.cc", "cache/a.cc"),
                ("CLI/CLI.hpp", "cli/options.cc", "cli/main.cc"),
                ("CLI/CLI.hpp", "cli/model_options.cc", "cli/options.h"),
                ("spawn.h", "base/a.cc", "cli/a.cc"),
                ("nlohmann/json.hpp", "tokenizer/a.cc", "tokenizer/a.h"),
                ("nlohmann/json.hpp", "cli/a.cc", "model/a.cc"),
                ("fmt/format.h", "model/a.cc", "model/a.h"),
                ("tl/expected.hpp", "base/result.h", "base/file.h"),
                ("boost/beast.hpp", "server/internal/a.h", "server/a.h"),
                ("rocksdb/db.h", "cache/internal/record_store.cc", "cache/disk_store.cc"),
                ("prometheus/counter.h", "server/metrics.cc", "server/a.cc"),
                ("immintrin.h", "kernels/a.cc", "model/a.cc"),
                ("x86intrin.h", "kernels/cpu/a.cc", "base/a.cc"),
                ("thread", "base/a.cc", "model/a.cc"),
                ("fstream", "base/a.cc", "tokenizer/a.cc"),
                ("iostream", "cli/a.cc", "base/a.cc"),
                ("unistd.h", "cli/a.cc", "tensor/a.cc"),
                ("sys/mman.h", "base/a.cc", "tensor/a.cc"),
                ("coroutine", "server/a.cc", "base/a.cc"),
                ("eigen3/Eigen/Core", None, "base/a.cc"),
                ("gtest/gtest.h", None, "base/a.cc")]:
            with self.subTest(header=header, bad=bad):
                if good:
                    self.assertEqual(self.library_findings(good, f"<{header}>"), [])
                self.assertEqual(self.library_findings(bad, f"<{header}>"), [(3, "library")])

    def test_knows_libraries_in_quotes(self):
        self.assertEqual(self.library_findings("kernels/cpu/a.cc", '"hwy/highway.h"'), [])
        self.assertEqual(self.library_findings("model/a.cc", '"hwy/highway.h"'), [(3, "library")])

    def library_findings(self, place, header):
        """Findings of a file at `place` whose third line includes `header`."""
        path = f"src/{place}"
        self.write(path, f"{HEADER}#include {header}\n")
        found = [(line, rule) for where, line, rule in self.found() if where == path]
        (self.root / path).unlink()
        return found

    def test_refuses_words_outside_their_room(self):
        for text, good in [("co_await f();", "server"), ("std::jthread t;", "base"),
                           ("std::async(f);", "base"), ("std::ifstream f;", "base"),
                           ("fopen(name, mode);", "base"), ("int d = ::open(name, 0);", "base"),
                           ("std::chrono::steady_clock::now();", "base"),
                           ("int p = ::fork();", "base"), ("execve(path, list, all);", "base"),
                           ("::posix_spawn(&p, path);", "base"), ("std::system(text);", "base"),
                           ("clock_gettime(0, &t);", "base"), ("std::cout << 1;", "cli"),
                           ("std::printf(text);", "cli"), ("fmt::print(text);", "cli"),
                           ("std::cerr << 1;", "cli"), ("std::fprintf(stderr, text);", "cli"),
                           ("std::exit(1);", "cli"), ("std::getenv(name);", "cli"),
                           ("std::getline(std::cin, line);", "cli"), ("std::abort();", None),
                           ("using namespace std;", None), ("auto p = new int;", None),
                           ("delete p;", None)]:
            with self.subTest(text=text):
                self.expect("src/model/a.cc", f"\n{text}\n", (2, "word"))
                if good:
                    self.write("src/model/a.cc", "")
                    self.expect(f"src/{good}/a.cc", text)
                    (self.root / f"src/{good}/a.cc").unlink()

    def test_refuses_preprocessor_conditions_outside_kernels(self):
        self.expect("src/model/a.cc", "#ifdef __AVX2__\n#else\n#endif\n#if 0\n#endif\n",
                    (1, "condition"), (4, "condition"))

    def test_allows_only_own_macros_in_the_conditions_of_check_h(self):
        self.expect("src/base/check.h", HEADER + "#ifdef NDEBUG\n#endif\n", (3, "condition"))

    def test_refuses_headers_without_opening_comment_or_pragma(self):
        self.expect("src/base/a.h", "#include <string>\n", (1, "header"), (1, "header"))


if __name__ == "__main__":
    unittest.main()
