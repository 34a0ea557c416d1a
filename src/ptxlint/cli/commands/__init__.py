"""The commands of `ptxlint`: one file each."""
