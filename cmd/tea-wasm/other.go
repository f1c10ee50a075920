//go:build !js

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "tea-wasm runs in browsers: build it with scripts/npm")
	os.Exit(2)
}
