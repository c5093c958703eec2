
	def f():
        return "ü – 日本 😀"  

    # trailing blanks follow


