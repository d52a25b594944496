# Put your own here: anything that reads "$prompt" or "$content" and gives an answer.
reply="I read ${#content} characters, and have nothing to say to them yet."
