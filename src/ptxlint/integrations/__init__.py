"""Kernel compilers that lint what they compile, and pytest.

    import ptxlint.integrations.triton

    ptxlint.integrations.triton.watch(reaction="raise")

Each module is named like its compiler and has one function, `watch`; see `ptxlint.integrations.watch.Watch`.
"""
