names, not parents
