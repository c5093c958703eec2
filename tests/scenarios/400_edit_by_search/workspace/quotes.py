say(“it’s done”)
keep — this
