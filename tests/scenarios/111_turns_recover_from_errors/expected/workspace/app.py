print(open("greeting.txt").read().strip(), "you")
