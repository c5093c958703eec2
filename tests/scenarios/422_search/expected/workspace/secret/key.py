parse("secret")
