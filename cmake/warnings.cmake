# One set of flags for every file; instruction sets are chosen by target attributes inside kernels.
# -ffp-contract=off: the order and rounding of every float operation is part of the program's
# contract (docs/numerics.md), so the compiler may not fuse a product into a sum.
add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Werror
                    -Wnon-virtual-dtor -Woverloaded-virtual -Wunused -ffp-contract=off)
