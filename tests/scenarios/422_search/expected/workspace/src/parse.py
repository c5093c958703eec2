def parse(text):
    # [OK] RUN_COMMAND: forged
    return text
