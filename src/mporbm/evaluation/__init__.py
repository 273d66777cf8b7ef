"""How results are kept and compared: outcome cache, intervals, nearest neighbours."""
