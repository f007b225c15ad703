"""The rules of check_rooms.py as data: which header and which word may stand where.

A place is a pattern for a path under src/ (`*` also matches `/`). A rule that a new room needs is
added here, never as a special case in the checker.
"""

# Third-party and system headers: (pattern of the header, places that may include it, rule).
# The first pattern that matches decides; a header with no pattern must be C++ standard.
HEADERS = [
    ("tl/*", ["base/result.h"], "tl::expected is seen through base/result.h"),
    ("fmt/*", ["*.cc"], "fmt is included in .cc files only"),
    ("spdlog/*", ["base/log.cc"], "spdlog is included in base/log.cc only"),
    ("xxhash.h", ["base/hash.cc"], "xxHash is included in base/hash.cc only"),
    ("openssl/*", ["base/hash.cc"], "OpenSSL is included in base/hash.cc only"),
    ("nlohmann/*", [f"{room}/*.cc" for room in
                    ("checkpoint", "tokenizer", "chat", "service", "server", "cli")],
     "nlohmann/json is included in .cc files of checkpoint, tokenizer, chat, service, server, cli"),
    ("unicode/*", ["tokenizer/engram_token_map.cc"],
     "ICU is included in tokenizer/engram_token_map.cc only"),
    ("pcre2.h", ["tokenizer/pretokenizer.cc"],
     "PCRE2 is included in tokenizer/pretokenizer.cc only"),
    ("hwy/*", ["kernels/cpu/*.cc"], "Highway is included in .cc files of kernels/cpu only"),
    ("CLI/*", ["cli/*options.cc"], "CLI11 is included in cli/*options.cc only"),
    ("rocksdb/*", ["cache/internal/record_store.cc", "cache/internal/record_file_system.*"],
     "RocksDB is included in cache/internal/record_store.cc and record_file_system only"),
    ("boost/*", ["server/*.cc", "server/internal/*"],
     "Boost is included in .cc files and internal/ of server only"),
    ("prometheus/*", ["server/metrics.cc"], "prometheus is included in server/metrics.cc only"),
    ("*intrin.h", ["kernels/*"], "SIMD headers are included in kernels only"),
    ("cpuid.h", ["kernels/*"], "SIMD headers are included in kernels only"),
    ("arm_*.h", ["kernels/*"], "SIMD headers are included in kernels only"),
    ("cuda*", ["kernels/cuda/*"], "CUDA headers are included in kernels/cuda only"),
    ("fstream", ["base/*"], "only base opens files"),
    ("thread", ["base/*"], "only base creates threads"),
    ("future", ["base/*"], "only base creates threads"),
    ("coroutine", ["server/*"], "coroutines stay in server"),
    ("iostream", ["cli/*.cc"], "only cli prints"),
    ("unistd.h", ["base/*", "cli/*.cc"], "only base and cli speak to the operating system"),
    ("sys/ioctl.h", ["base/*", "cli/*.cc"], "only base and cli speak to the operating system"),
    ("sys/*.h", ["base/*"], "only base speaks to the operating system"),
    ("linux/*.h", ["base/*"], "only base speaks to the operating system"),
    ("fcntl.h", ["base/*"], "only base opens files"),
    ("dirent.h", ["base/*"], "only base opens files"),
    ("pthread.h", ["base/*"], "only base creates threads"),
    ("sched.h", ["base/*"], "only base creates threads"),
    ("signal.h", ["base/*"], "only base speaks to the operating system"),
    ("malloc.h", ["base/*"], "only base speaks to the operating system"),
    ("spawn.h", ["base/*"], "only base starts processes"),
]

# Rooms of which only some headers may be included: (including room, included room) -> headers.
ALLOWED_HEADERS = {
    ("model", "cache"): {"cache/kv_layout.h", "cache/kv_view.h"},
}

# Words in code (comments and literals do not count): (pattern, places that may use it, rule).
WORDS = [
    (r"\bco_(?:await|return|yield)\b", ["server/*"], "coroutines stay in server"),
    (r"\bstd::(?:jthread|thread|async)\b|\bpthread_create\b", ["base/*"],
     "only base creates threads"),
    (r"(?<![\w>.])(?:v?fork|exec[lv]p?e?|posix_spawnp?)\s*\(|\bstd::system\b", ["base/*"],
     "only base starts processes"),
    (r"\b(?:fopen|freopen|creat)\s*\(|(?<![\w>])::\s*open(?:at|64)?\s*\("
     r"|\bstd::(?:basic_)?(?:[io]?fstream|filebuf)\b", ["base/*"], "only base opens files"),
    (r"\b(?:steady|system|high_resolution|utc)_clock\b|\bclock_gettime\b|\bgettimeofday\b"
     r"|\bstd::(?:time|clock)\s*\(", ["base/*"], "only base reads the clock"),
    (r"\bstd::(?:cout|wcout)\b|\bfmt::print\b|\b(?:printf|puts|putchar)\s*\(",
     ["cli/*.cc"], "only cli prints to stdout"),
    (r"\bstd::w?cin\b|\bstdin\b|\bgetenv\b", ["cli/*.cc"],
     "only cli reads standard input and the environment"),
    (r"\bstd::(?:cerr|clog)\b|\bv?fprintf\s*\(|\b(?:stdout|stderr)\b",
     ["cli/*.cc", "base/check.cc", "base/log.cc"], "library code never prints"),
    (r"\bstd::(?:exit|_Exit|quick_exit|atexit)\b|(?<![\w.>:])_?exit\s*\(", ["cli/*.cc"],
     "only cli exits"),
    (r"\babort\s*\(|\bstd::terminate\b", ["base/check.cc"], "only a failed check aborts"),
    (r"\busing\s+namespace\b", [], "no using namespace"),
    (r"\bnew\b|(?<!=)(?<!= )\bdelete\b", [], "no new and no delete: owners are unique_ptr"),
    (r"\bstd::expected\b", [], "a result is locket::Result"),
]

# Preprocessor conditions: places where any may stand, and those where macros of ours may.
CONDITION_PLACES = ["kernels/*"]
OWN_CONDITION_PLACES = ["base/check.h"]
