package engine

import (
	"fmt"
	"strconv"
	"strings"
)

// Paths name executions:
//
//	fetch            the node fetch
//	fetch#2          its second visit in the same frame
//	sub/fetch        a node of a subgraph
//	loop[0]/fetch    in the first pass of a loop
//	each[3]/fetch    for the fourth item of a map
//	n/check          the step check of the node n
//	a>b/clean        in the branch that begins at b, of the fan-out behind a
//	a>b~2/clean      in its second attempt

// pathBorders are the characters that begin a further part of a path.
const pathBorders = "/[>!~"

func visitPath(prefix, node string, visit int) string {
	path := node
	if prefix != "" {
		path = prefix + "/" + node
	}
	if visit > 1 {
		path += "#" + strconv.Itoa(visit)
	}
	return path
}

func indexPath(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

func branchPath(path, entry string) string { return path + ">" + entry }

// attemptPath is the path of a container's or branch's n-th attempt.
func attemptPath(path string, n int) string {
	if n <= 1 {
		return path
	}
	return fmt.Sprintf("%s~%d", path, n)
}

// withoutAttempts gives the path as it would be in the first attempt.
func withoutAttempts(path string) string {
	if !strings.Contains(path, "~") {
		return path
	}
	var b strings.Builder
	for {
		head, rest, found := strings.Cut(path, "~")
		b.WriteString(head)
		if !found {
			return b.String()
		}
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		if digits == 0 || digits < len(rest) && !strings.ContainsRune("/>[#!", rune(rest[digits])) {
			b.WriteByte('~') // a node's name
		} else {
			rest = rest[digits:]
		}
		path = rest
	}
}
