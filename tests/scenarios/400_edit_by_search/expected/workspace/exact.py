def add(a, b):
    """Adds."""
    return a + b


def subtract(a, b):
    return a - b
