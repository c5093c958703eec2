  1 | 2
    return 2
