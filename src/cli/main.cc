#include "cli/commands.h"

int main(int argc, char** argv) { return locket::cli::run_program(argc, argv); }
