package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// release is set when a release is built.
var release string

// version is the release, or the module's version for `go install`.
func version() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok && strings.HasPrefix(info.Main.Version, "v") {
		return info.Main.Version[1:]
	}
	return "0.0.0-dev"
}

type versionCmd struct{}

// Run prints the version with the platform.
func (versionCmd) Run(a *app) error {
	_, err := fmt.Fprintf(a.out, "tea %s %s/%s %s\n", version(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	return err
}
