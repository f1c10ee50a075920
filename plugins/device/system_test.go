package device_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"
)

func TestReportsOnTheDevice(t *testing.T) {
	t.Parallel()
	got := newPlant(t, object{}).must("system.info", object{})
	unavailable, _ := got["unavailable"].(object)
	for key := range unavailable {
		if key != "temperatures" { // a sensor can have none at the moment
			t.Errorf("unavailable: %v", unavailable)
		}
	}
	hostname, err := os.Hostname()
	if err != nil || got["hostname"] != hostname || got["os"] != runtime.GOOS || got["cores"] != int64(runtime.NumCPU()) {
		t.Errorf("%v, %v", got, err)
	}
	if uptime, ok := got["uptime_seconds"].(int64); !ok || uptime <= 0 {
		t.Errorf("uptime: %v", got["uptime_seconds"])
	}
	spaces := []any{got["memory"]}
	if runtime.GOOS != "windows" {
		disks, _ := got["disks"].([]any)
		spaces = append(spaces, disks[0])
		if disks[0].(object)["path"] != "/" || len(got["load"].([]any)) != 3 {
			t.Errorf("disks %v, load %v", disks, got["load"])
		}
	}
	for _, s := range spaces {
		s, _ := s.(object)
		if total, free := s["total_bytes"].(int64), s["free_bytes"].(int64); free <= 0 || total < free {
			t.Errorf("memory or disk: %v", s)
		}
	}
	for _, key := range []string{"temperatures", "network"} {
		if _, ok := got[key].([]any); !ok {
			t.Errorf("%s: %v", key, got[key])
		}
	}
}

// journalctl puts a program of this name first in the path, which runs a script.
func journalctl(t *testing.T, script string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("no sh")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "journalctl"), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

var units = object{"system": object{"journal": []any{"pump.service", "tea-*.service"}}}

func TestReadsTheJournalOfAUnit(t *testing.T) { //nolint:paralleltest // it changes PATH
	args := filepath.Join(t.TempDir(), "args")
	journalctl(t, `printf '%s\n' "$@" >`+args+`
cat <<'END'
-- Boot b --
2026-11-28T05:00:00+0000 gw pump[7]: started
2026-11-28T05:00:01+0000 gw pump[7]: too
                                     hot
END
`)
	got := newPlant(t, units).must("system.journal", object{"unit": "pump.service", "lines": 3})
	want := object{"success": true, "truncated": false, "lines": []any{
		"2026-11-28T05:00:00+0000 gw pump[7]: started", "2026-11-28T05:00:01+0000 gw pump[7]: too", "                                     hot",
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	passed, err := os.ReadFile(args)
	if err != nil || !strings.HasSuffix(string(passed), "\n--lines=3\n--unit=pump.service\n") {
		t.Errorf("arguments: %s, %v", passed, err)
	}
	newPlant(t, units).must("system.journal", object{"unit": "tea-serve@a.service"})
}

func TestAJournalIsReadOnlyIfTheSettingsAllowIt(t *testing.T) { //nolint:paralleltest // it changes PATH
	journalctl(t, "exit 1")
	p := newPlant(t, units)
	for _, unit := range []string{"", "pump", "--file=x.service", "-u.service", "*.service", "tea-*.service", "pump.service\n--all", "a b.service", "../x.service", "pump.service --all"} {
		p.fails("system.journal", object{"unit": unit}, tea.ValidationError, nil)
	}
	for _, unit := range []string{"ssh.service", "xpump.service", "pump.socket", "tea.service"} {
		p.fails("system.journal", object{"unit": unit}, tea.PermissionDenied, nil)
	}
	newPlant(t, object{}).fails("system.journal", object{"unit": "pump.service"}, tea.PermissionDenied, nil)
	for _, pattern := range []string{"pump", "-*.service", "[a.service", "?.service"} {
		newPlant(t, object{"system": object{"journal": []any{pattern}}}).fails("system.info", object{}, tea.ValidationError, nil)
	}
}

func TestAJournalThatCannotBeReadIsNotEmpty(t *testing.T) {
	for script, want := range map[string]string{
		"echo 'Hint: You are not seeing messages from the system.' >&2": "Hint: You are not seeing messages from the system.",
		"echo broken >&2; exit 3": "exit status 3: broken",
	} {
		journalctl(t, script)
		if e := newPlant(t, units).fails("system.journal", object{"unit": "pump.service"}, tea.InternalError, nil); !strings.Contains(e.Message, want) {
			t.Errorf("%s: %v", script, e)
		}
	}
	for _, script := range []string{"exit 0", "echo '-- No entries --'"} {
		journalctl(t, script)
		if got := newPlant(t, units).must("system.journal", object{"unit": "pump.service"}); len(got["lines"].([]any)) > 0 {
			t.Errorf("%s: %v", script, got)
		}
	}
	t.Setenv("PATH", t.TempDir())
	newPlant(t, units).fails("system.journal", object{"unit": "pump.service"}, tea.DependencyMissing, nil)
}

func TestALongJournalIsCut(t *testing.T) { //nolint:paralleltest // it changes PATH
	journalctl(t, "yes 2026-11-28T05:00:00+0000 gw pump[7]: hot | head -c 1000000 | head -n -1; echo last")
	got := newPlant(t, units).must("system.journal", object{"unit": "pump.service"})
	lines := got["lines"].([]any)
	if n := len(lines); n != 6394 || lines[0] != lines[1] || lines[n-1] != "last" || got["truncated"] != true {
		t.Errorf("%d lines, the first is %q, truncated %v", n, lines[0], got["truncated"])
	}
}
