//go:build unix

package subproc

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// psTimeout bounds a call of ps.
const psTimeout = 5 * time.Second

// askPS asks ps for the memory, the processor time and the state of a process,
// for systems without /proc. It returns false if they are not known.
func askPS(pid int) (memory int64, used time.Duration, stopped, known bool) { //nolint:unparam // the other systems use it all
	ctx, cancel := context.WithTimeout(context.Background(), psTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, "/bin/ps", "-o", "rss=", "-o", "time=", "-o", "state=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return 0, 0, false, false
	}
	return parsePS(string(out))
}

// parsePS reads a line such as "1234 0:01.50 S+".
func parsePS(line string) (memory int64, used time.Duration, stopped, known bool) {
	fields := strings.Fields(line)
	if len(fields) < 3 {
		return 0, 0, false, false
	}
	kilobytes, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return 0, 0, false, false
	}
	days, clock, ok := strings.Cut(fields[1], "-")
	if !ok {
		days, clock = "0", fields[1]
	}
	seconds, err := strconv.ParseFloat(days, 64)
	seconds *= 24
	if strings.Count(clock, ":") < 2 { // without hours
		seconds *= 60
	}
	for i, part := range strings.Split(clock, ":") {
		n, bad := strconv.ParseFloat(part, 64)
		if bad != nil {
			err = bad
		}
		if i > 0 {
			seconds *= 60
		}
		seconds += n
	}
	return kilobytes << 10, time.Duration(seconds * float64(time.Second)), strings.HasPrefix(fields[2], "T"), err == nil
}

// limitFiles makes a command start through a shell that limits its open files, for
// systems that cannot limit another process. The process keeps its id.
func limitFiles(cmd *exec.Cmd, n int64) {
	cmd.Args = append([]string{"sh", "-c", fmt.Sprintf(`ulimit -n %d; exec "$@"`, n), "sh", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
}
