main
