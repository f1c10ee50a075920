//go:build !noplugins

package teacmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/host/subproc"
)

func (c *pluginStatusCmd) Run(a *app) error {
	a.setReport(c.reportFlags)
	hosts := statusOf(c.Names)
	if c.JSON {
		return writeJSON(a.stdout, append([]subproc.HostStatus{}, hosts...))
	}
	var rows [][]string
	for _, h := range hosts {
		for _, p := range h.Plugins {
			pid := "-"
			if p.PID != 0 {
				pid = strconv.Itoa(p.PID)
			}
			rows = append(rows, []string{
				strconv.Itoa(h.PID), p.Name, p.Version, p.State, pid, strconv.Itoa(p.Generation),
				strconv.FormatInt(p.Calls, 10), strconv.FormatInt(p.Failures, 10), strconv.FormatInt(p.Crashes, 10), mebibytes(p.RSSBytes),
			})
		}
	}
	if len(rows) == 0 {
		fmt.Fprintln(a.report, "no running tea of this user has started such a plugin")
		return nil
	}
	if err := a.table([]string{"HOST", "PLUGIN", "VERSION", "STATE", "PID", "GENERATION", "CALLS", "FAILED", "CRASHES", "RSS"}, rows); err != nil {
		return err
	}
	for _, h := range hosts {
		for _, p := range h.Plugins {
			if err := a.printProblems(p, h.PID); err != nil {
				return err
			}
		}
	}
	return nil
}

// statusOf returns the running hosts with the named plugins, or all.
func statusOf(names []string) []subproc.HostStatus {
	hosts := subproc.Hosts(context.Background())
	for i := range hosts {
		hosts[i].Plugins = slices.DeleteFunc(hosts[i].Plugins, func(p subproc.Status) bool {
			return len(names) > 0 && !slices.Contains(names, p.Name)
		})
	}
	return slices.DeleteFunc(hosts, func(h subproc.HostStatus) bool { return len(h.Plugins) == 0 })
}

// printProblems prints the problems of a plugin: its last words as it wrote them,
// the rest at the width of the terminal.
func (a *app) printProblems(p subproc.Status, host int) error {
	headline := func(text string) error {
		fmt.Fprintln(a.out)
		return a.table(nil, [][]string{{fmt.Sprintf("%s in host %d: %s", p.Name, host, text)}})
	}
	var err error
	if p.LastCrash != "" {
		when := ""
		if p.CrashedAt != nil {
			when = " " + p.CrashedAt.Local().Format(time.DateTime)
		}
		err = headline("died" + when + ": " + p.LastCrash)
		for line := range strings.Lines(p.LastWords) {
			fmt.Fprintln(a.out, "  "+strings.ReplaceAll(strings.TrimRight(line, "\n"), "\t", "  "))
		}
	}
	if p.Refused != "" {
		err = errors.Join(err, headline("not replaced: "+p.Refused))
	}
	return err
}

// runningRows describe the processes of a plugin in running hosts.
func runningRows(name string) [][]string {
	var rows [][]string
	for _, h := range statusOf([]string{name}) {
		for _, p := range h.Plugins {
			text := fmt.Sprintf("in host %d: %s %s, generation %d, %d calls, %d failed, %d crashes", h.PID, p.Version, p.State, p.Generation, p.Calls, p.Failures, p.Crashes)
			if p.PID != 0 {
				text += fmt.Sprintf(", pid %d, %s", p.PID, mebibytes(p.RSSBytes))
			}
			rows = append(rows, []string{text})
		}
	}
	return rows
}

func mebibytes(n int64) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// pluginStatus describes the plugins of this process.
func pluginStatus(p processes) any {
	if p, ok := p.(interface{ Status() []subproc.Status }); ok {
		return append([]subproc.Status{}, p.Status()...)
	}
	return []subproc.Status{}
}
