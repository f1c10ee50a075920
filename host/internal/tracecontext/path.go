package tracecontext

import "strings"

// borders are the characters that begin a further part of an execution's path.
const borders = "/>[#~!"

// Outer cuts the last part off an execution's path: "loop[0]/fetch#2" gives
// "loop[0]/fetch", then "loop[0]", "loop" and "".
func Outer(path string) string {
	return path[:max(0, strings.LastIndexAny(path, borders))]
}

// Below tells whether a path lies under another one.
func Below(path, outer string) bool {
	return outer == "" && path != "" ||
		len(path) > len(outer) && strings.HasPrefix(path, outer) && strings.IndexByte(borders, path[len(outer)]) >= 0
}

// Frame gives the path of the sequence that a node stands in: "" for the
// workflow's own, "loop[0]" for "loop[0]/fetch". The only node of a map's
// branch, "each[3]", is a sequence of its own.
func Frame(path string) string {
	cut := strings.LastIndexByte(path, '/')
	if strings.ContainsAny(path[cut+1:], ">[") {
		return path
	}
	return path[:max(0, cut)]
}
