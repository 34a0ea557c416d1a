"""JSON schemas of what ptxlint writes."""
