"""The views of `ptxlint show`: one file each."""
