"""The rules that come with ptxlint: one file per rule, found by the registry."""
