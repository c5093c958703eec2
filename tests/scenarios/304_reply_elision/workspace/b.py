x = 0
f(x)
