def f(a):
    return a


def g(b):
    return b + 1


def h(b):
    return b
