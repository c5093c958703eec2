parse(1)
