say("done")
keep — this
