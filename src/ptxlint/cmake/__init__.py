"""The CMake module `PtxlintCheck`; `ptxlint cmake-dir` prints where it is."""
