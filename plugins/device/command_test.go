package device_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

func allow(commands object) object { return object{"command": object{"allow": commands}} }

func sh(script string, more object) object {
	command := object{"argv": []any{"sh", "-c", script}}
	for key, v := range more {
		command[key] = v
	}
	return command
}

func TestRunsAllowedCommands(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no sh")
	}
	peertest.Long(t, "it waits for a time limit")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := newPlant(t, allow(object{
		"env":   sh("env | sort; pwd; echo problem >&2", object{"env": object{"SPEED": "7"}, "dir": dir}),
		"grep":  object{"argv": []any{"grep", "{word}"}, "stdin": true, "success": []any{0, 1}, "params": object{"word": object{"type": "string", "pattern": "[a-z]+"}}},
		"long":  sh("yes ä | head -c 100000", object{"max_output_bytes": 100}),
		"bytes": sh(`printf 'a\377b'`, nil),
		"fail":  sh("echo one; echo two >&2; exit 3", nil),
		"sleep": sh("sleep 600 & sleep 600", object{"timeout_seconds": 1}),
		"kill":  sh("kill -9 $$", nil),
		"none":  object{"argv": []any{"no-such-program"}},
		"dry":   sh("touch made", object{"dry_run": true, "dir": dir}),
		"rate":  sh("true", object{"per_minute": 1}),
	}))
	run := func(name string) object { return object{"command": name} }
	got := p.must("command.run", run("env"))
	want := []string{"LANG=C.UTF-8", "PATH=" + os.Getenv("PATH"), "PWD=" + dir, "SPEED=7"}
	lines := strings.Split(got["stdout"].(string), "\n")
	lines = lines[:len(lines)-2]
	kept := lines[:0]
	for _, line := range lines {
		if !strings.HasPrefix(line, "_=") && !strings.HasPrefix(line, "OLDPWD=") && !strings.HasPrefix(line, "SHLVL=") {
			kept = append(kept, line)
		}
	}
	if diff := cmp.Diff(want, kept); diff != "" || got["stderr"] != "problem\n" || !strings.HasSuffix(got["stdout"].(string), "\n"+dir+"\n") {
		t.Errorf("environment: %s\n%v", diff, got)
	}
	got = p.must("command.run", object{"command": "grep", "params": object{"word": "pump"}, "stdin": "valve\npump 1\n"})
	if got["stdout"] != "pump 1\n" {
		t.Errorf("grep: %v", got)
	}
	if got := p.must("command.run", object{"command": "grep", "params": object{"word": "pump"}, "stdin": ""}); got["exit_code"] != int64(1) {
		t.Errorf("an exit code that is a success: %v", got)
	}
	if got := p.must("command.run", run("long")); got["truncated"] != true || got["stdout"] != strings.Repeat("ä\n", 33) {
		t.Errorf("long output: %v", got)
	}
	if got := p.must("command.run", run("bytes")); got["stdout"] != "a\uFFFDb" {
		t.Errorf("bytes: %v", got)
	}
	if e := p.fails("command.run", run("fail"), "command_failed", "failed"); e.Retryable || e.Details["outcome_known"] != true || e.Details["stdout"] != "one\n" || e.Details["exit_code"] != int64(3) || !strings.Contains(e.Message, "exit code 3: two") {
		t.Errorf("exit code: %v, %v", e, e.Details)
	}
	p.fails("command.run", run("kill"), "command_failed", "unknown")
	p.fails("command.run", run("sleep"), tea.Timeout, "unknown") // the second sleep would hold the outputs
	p.fails("command.run", run("none"), tea.NotFound, "none")
	if got := p.must("command.run", run("dry")); got["dry_run"] != true {
		t.Errorf("dry run: %v", got)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("after a dry run: %v, %v", files, err)
	}
	p.must("command.run", run("rate"))
	p.fails("command.run", run("rate"), tea.RateLimited, "none")
}

func TestHostileArgumentsAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root := filepath.Join(dir, "root")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(root, "sub"), 0o700), os.WriteFile(filepath.Join(root, "in"), []byte("in"), 0o600),
		os.WriteFile(filepath.Join(dir, "out"), []byte("out"), 0o600), os.Symlink("../out", filepath.Join(root, "link")), os.Symlink("..", filepath.Join(root, "up")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	show := func(param object) object {
		return object{"argv": []any{"printf", "%s\n", "{v}", "--v={v}"}, "params": object{"v": param}}
	}
	p := newPlant(t, allow(object{
		"word":    show(object{"type": "string", "pattern": "[^/]*"}),
		"option":  show(object{"type": "string", "enum": []any{"-n", "", "a b"}}),
		"integer": show(object{"type": "integer", "max": 10}),
		"number":  show(object{"type": "number", "min": -1, "max": 1}),
		"path":    show(object{"type": "path", "root": root}),
	}))
	for kind, commands := range map[tea.ErrorType]map[string][]any{
		tea.ValidationError: {
			"word":    {"", "a\nb", "a\x00b", "\x1b[2J", strings.Repeat("a", 5000), 7, nil, []any{"a"}, object{"a": 1}},
			"integer": {1.5, "7", true, nil, "7; reboot"}, "number": {"0.5"}, "path": {"missing/file", ""},
		},
		tea.PermissionDenied: {
			"word": {"-rf", "--help", "a/b"}, "option": {"-x", "a", "-n ", " -n"}, "integer": {-1, 11}, "number": {-1.1, 1.1},
			"path": {"../out", "link", "up/out", "/etc/passwd", "in/../../out", "-rf/../../../out", "sub/../../out", "%2e%2e/out"},
		},
	} {
		for command, values := range commands {
			for _, v := range values {
				p.fails("command.run", object{"command": command, "params": object{"v": v}}, kind, "none")
			}
		}
	}
	real, err := filepath.EvalSymlinks(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		command string
		value   any
		want    string
	}{
		{"word", "a b; $(reboot) `x` 'y' \"z\" * ~ & |", "a b; $(reboot) `x` 'y' \"z\" * ~ & |"},
		{"word", "{v}", "{v}"},
		{"word", "%s", "%s"},
		{"option", "-n", "-n"},
		{"option", "a b", "a b"},
		{"integer", 10.0, "10"},
		{"integer", 0, "0"},
		{"number", -0.25, "-0.25"},
		{"path", "in", filepath.Join(real, "in")},
		{"path", "sub/new", filepath.Join(real, "sub/new")},
	} {
		got := p.must("command.run", object{"command": c.command, "params": object{"v": c.value}})
		if want := c.want + "\n--v=" + c.want + "\n"; got["stdout"] != want {
			t.Errorf("%s %v: %q, want %q", c.command, c.value, got["stdout"], want)
		}
	}
	p.fails("command.run", object{"command": "sh"}, tea.NotFound, "none")
	p.fails("command.run", object{"command": "word"}, tea.ValidationError, "none")
	p.fails("command.run", object{"command": "word", "params": object{"v": "a", "w": "b"}}, tea.ValidationError, "none")
	p.fails("command.run", object{"command": "word", "params": object{"v": "a"}, "stdin": "x"}, tea.PermissionDenied, "none")
}

func TestRefusesMistakesInTheSettingsOfCommands(t *testing.T) {
	t.Parallel()
	for want, command := range map[string]object{
		"the program must not be a parameter": {"argv": []any{"{a}"}, "params": object{"a": object{"type": "integer"}}},
		"argv[1]: is not in params":           {"argv": []any{"a", "{b}"}},
		"no argument has {a}":                 {"argv": []any{"a"}, "params": object{"a": object{"type": "integer"}}},
		"needs enum or pattern":               {"argv": []any{"a", "{a}"}, "params": object{"a": object{"type": "string"}}},
		"is not absolute":                     {"argv": []any{"a", "{a}"}, "params": object{"a": object{"type": "path"}}},
		"pattern: ":                           {"argv": []any{"a", "{a}"}, "params": object{"a": object{"type": "string", "pattern": "("}}},
		"unknown key \"allow.c.max\"":         {"argv": []any{"a"}, "max": 7},
	} {
		if e := newPlant(t, allow(object{"c": command})).fails("command.run", object{"command": "c"}, tea.ValidationError, nil); !strings.Contains(e.Message, want) {
			t.Errorf("got %v, want %q", e, want)
		}
	}
}
