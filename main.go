// Postern keeps an application's outgoing postbacks on disk and delivers them.
package main

import (
	"os"

	"postern/proxy/cli"
)

func main() {
	os.Exit(cli.Main(cli.Process{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Env: os.LookupEnv,
	}))
}
