package subproc

import (
	"fmt"
	"path"
	"strings"
)

// lastOutputNote returns the end of an error message: the most informative line of the
// last output. The error's details have all lines.
func lastOutputNote(words string) string {
	if words == "" {
		return "; it wrote nothing"
	}
	return fmt.Sprintf("; last output: %.300s", reasonIn(strings.Split(words, "\n")))
}

// reasonIn returns the reason of a crash as the runtimes of common languages
// print it, or the last line.
func reasonIn(lines []string) string {
	last := len(lines) - 1
	for i, line := range lines {
		switch {
		case isFatal(line): // Go
			if at := firstFrame(lines[i+1:]); at != "" {
				return line + ", in " + at
			}
			return line
		case strings.HasPrefix(line, "thread '") && strings.Contains(line, " panicked at ") && i < last: // Rust
			return line + " " + lines[i+1]
		case strings.HasPrefix(lines[last], "Node.js v") && strings.Contains(line, "Error: ") && !strings.HasPrefix(line, " "):
			return line
		}
	}
	return lines[last]
}

// isFatal reports whether a line begins the crash report of the Go runtime.
func isFatal(line string) bool {
	name, _, isSignal := strings.Cut(line, ": ")
	isSignal = isSignal && len(name) > len("SIG") && strings.HasPrefix(name, "SIG") && name == strings.ToUpper(name) && !strings.Contains(name, " ")
	return isSignal || strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ")
}

// firstFrame returns the function and the position of the first frame of a failed
// goroutine in a crash report; "" if there is none.
func firstFrame(lines []string) string {
	inside := false
	for i, line := range lines {
		switch {
		case strings.HasPrefix(line, "goroutine "):
			if inside {
				return ""
			}
			inside = true
		case !inside, strings.HasPrefix(line, "\t"), strings.HasPrefix(line, "panic("), strings.HasPrefix(line, "runtime."), i+1 == len(lines):
		default:
			name := path.Base(line)
			if end := strings.LastIndexByte(name, '('); end > 0 {
				name = name[:end]
			}
			at, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " ")
			return fmt.Sprintf("%s (%s)", name, path.Base(at))
		}
	}
	return ""
}

// isRegister reports whether a line of a crash report is the content of a
// register, such as "rax    0x0".
func isRegister(line string) bool {
	fields := strings.Fields(line)
	return len(fields) == 2 && strings.HasPrefix(fields[1], "0x") && len(fields[0]) <= 6 && line[0] != '\t'
}
