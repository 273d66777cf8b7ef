"""How results are computed, kept and compared: processes, outcome files, errors, intervals."""
