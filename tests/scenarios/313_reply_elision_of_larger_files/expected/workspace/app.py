import os
import sys


def f1(a):
    return a


# All that was there is gone: f1 does it.
