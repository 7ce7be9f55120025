package main

import "os"

func main() {
	e, release := processEnv()
	code := run(e)
	release()
	os.Exit(code)
}
