"""One file per subcommand of ``python -m bench.corpus``: each defines ``command``, a click command."""
