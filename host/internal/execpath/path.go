package execpath

import "strings"

// borders are the characters that begin a further part of a path.
const borders = "/>[~!"

// Outer returns the path of what an execution is part of: "loop[0]" for
// "loop[0]/fetch", then "loop", then "".
func Outer(path string) string {
	return path[:max(0, strings.LastIndexAny(path, borders))]
}

// Below reports whether a path is part of another one. Every path is part of
// "", the run.
func Below(path, outer string) bool {
	return outer == "" && path != "" ||
		len(path) > len(outer) && strings.HasPrefix(path, outer) && strings.IndexByte(borders, path[len(outer)]) >= 0
}

// Frame returns the path of the sequence that a node belongs to: "" for the
// workflow's own, "loop[0]" for "loop[0]/fetch". The only node of a map's
// item, "each[3]", is a sequence of its own.
func Frame(path string) string {
	cut := strings.LastIndexByte(path, '/')
	if strings.ContainsAny(path[cut+1:], ">[") {
		return path
	}
	return path[:max(0, cut)]
}

// Label returns a path's last part in words: "fetch #2" for "loop[0]/fetch#2".
func Label(path string) string {
	path = path[strings.LastIndexByte(path, '/')+1:]
	if name, visit, again := strings.Cut(path, "#"); again {
		return name + " #" + visit
	}
	return path
}
