"""Rules of family 8xx: register reallocation and dependent launch."""
