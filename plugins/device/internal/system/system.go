// Package system has the actions system.info and system.journal, which report on the
// device itself. Start with [Part].
package system

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/plugins/device/internal/guard"
	"github.com/the-edge-agent/tea/plugins/device/internal/part"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
)

const settingsKey = "system"

// Settings are the settings under settings.system.
type Settings struct {
	Journal []Unit `json:"journal,omitempty" doc:"the units whose journal can be read, such as pump.service; * stands for any characters"`
}

// Unit is the name of a unit with its type, in which * stands for any characters. journalctl
// completes other names.
type Unit string

// JSONSchema returns the schema.
func (Unit) JSONSchema() *schema.Schema {
	return schema.With[string](`{"description": "name of a unit with its type, such as pump.service", "pattern": "^[A-Za-z0-9:_.\\\\@*][A-Za-z0-9:_.\\\\@*-]*[.][a-z*]+$"}`)
}

// Part returns the part of the bundle.
func Part() part.Part {
	return part.New(settingsKey, func(s Settings, _ *guard.Guards) any { return &Client{s} },
		part.Action(settingsKey, "info", "Returns the CPU, load, memory, disks, temperatures, uptime and network of the device.", (*Client).Info, tea.Idempotent(), tea.Reads()),
		part.Action(settingsKey, "journal", "Returns the last lines of a unit's journal.", (*Client).Journal, tea.Idempotent(), tea.Reads()))
}

// Client reports on the device.
type Client struct{ settings Settings }

// JournalParams are the parameters of system.journal.
type JournalParams struct {
	Unit  string `json:"unit" pattern:"^[A-Za-z0-9:_.\\\\@][A-Za-z0-9:_.\\\\@-]*[.][a-z]+$" doc:"name of the unit with its type, such as pump.service; settings.system.journal must allow it"`
	Lines int    `json:"lines,omitempty" default:"50" minimum:"1" maximum:"1000" doc:"number of entries"`
}

// JournalResult is the result of system.journal.
type JournalResult struct {
	Success   bool     `json:"success" doc:"always true"`
	Lines     []string `json:"lines" doc:"the last lines, oldest first: time, host, program and message"`
	Truncated bool     `json:"truncated" doc:"whether older lines are missing because all have more than 256 KiB"`
}

const (
	maxJournal     = 256 << 10
	journalTimeout = 30 * time.Second
)

// Journal implements system.journal.
func (c *Client) Journal(ctx context.Context, _ *tea.Request, p JournalParams) (*JournalResult, error) {
	if !slices.ContainsFunc(c.settings.Journal, func(pattern Unit) bool {
		ok, err := path.Match(strings.ReplaceAll(string(pattern), `\`, `\\`), p.Unit)
		return ok && err == nil
	}) {
		return nil, tea.Errorf(tea.PermissionDenied, "settings.system.journal does not allow the journal of %q", p.Unit)
	}
	ctx, cancel := context.WithTimeout(ctx, journalTimeout)
	defer cancel()
	out, reason := &tail{}, &tail{}
	cmd := exec.CommandContext(ctx, "journalctl", "--output=short-iso", "--no-pager", "--lines="+strconv.Itoa(cmp.Or(p.Lines, 50)), "--unit="+p.Unit)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = out, reason, 2*time.Second
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}
	err := cmd.Run()
	r := &JournalResult{Success: true, Lines: []string{}, Truncated: out.dropped}
	for line := range strings.Lines(strings.ToValidUTF8(string(out.kept), "\uFFFD")) {
		if !strings.HasPrefix(line, "-- ") { // such as "-- No entries --"
			r.Lines = append(r.Lines, strings.TrimSuffix(line, "\n"))
		}
	}
	said := strings.TrimSpace(string(reason.kept))
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return nil, tea.Errorf(tea.DependencyMissing, "system.journal needs journalctl, which belongs to systemd: %w", err)
	case err != nil:
		return nil, tea.Errorf(tea.AsError(cmp.Or(ctx.Err(), err)).Type, "read the journal of %q: %w: %s", p.Unit, err, cmp.Or(said, "no output"))
	case len(r.Lines) == 0 && said != "": // such as a right that is missing
		return nil, tea.Errorf(tea.InternalError, "read the journal of %q: %s", p.Unit, said)
	}
	return r, nil
}

// tail keeps the whole lines at the end of an output.
type tail struct {
	kept    []byte
	dropped bool
}

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if excess := len(t.kept) - maxJournal; excess > 0 {
		t.kept, t.dropped = t.kept[excess+bytes.IndexByte(t.kept[excess:], '\n')+1:], true
	}
	return len(p), nil
}
