one line
