def main():
    parse("a")
    return PARSE
