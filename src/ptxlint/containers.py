"""How files begin that may hold PTX without being PTX."""

ELF = b"\x7fELF"
FATBIN = b"\x50\xed\x55\xba"
ZIP = b"PK\x03\x04"
ARCHIVE = b"!<arch>\n"

CONTAINERS = (ELF, FATBIN, ZIP, ARCHIVE)
