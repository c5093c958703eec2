import os

def f1(a):
    b = a + 1
    return b


def f2(a):
    b = a + 2
    return b


def f3(a):
    b = a + 3
    return b


def f4(a):
    b = a + 4
    return b


def f5(a):
    b = a + 5
    return b


