"""The grammar of PTX: syntax only, no knowledge of any opcode."""
