package fileactions_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/internal/builtin/actiontest"
	"github.com/the-edge-agent/tea/host/internal/builtin/fileactions"
	tea "github.com/the-edge-agent/tea/sdk"
)

type params = actiontest.Params

func open(t *testing.T) (*actiontest.Caller, string) {
	t.Helper()
	dir := t.TempDir()
	return actiontest.Open(t, fileactions.Bundle("1.0.0", ""), params{"file": params{"root": dir, "max_bytes": 1000}}), dir
}

func put(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestWriteAppendReadDelete(t *testing.T) {
	t.Parallel()
	c, dir := open(t)
	if diff := cmp.Diff(params{"success": true, "path": "a/b.txt", "bytes": int64(4)}, c.Must("file.write", params{"path": "a/b.txt", "content": "grü", "create_dirs": true})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(params{"success": true, "path": "a/b.txt", "bytes": int64(1)}, c.Must("file.append", params{"path": "a/b.txt", "content": "n"})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(params{"success": true, "content": "grün", "size": int64(5)}, c.Must("file.read", params{"path": "a/b.txt"})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(params{"success": true, "exists": true, "type": "file", "size": int64(5)}, c.Must("file.exists", params{"path": "a/b.txt"})); diff != "" {
		t.Error(diff)
	}
	c.Fails(tea.ValidationError, "file.delete", params{"path": "a"})
	if diff := cmp.Diff(params{"success": true, "path": "a/b.txt", "deleted": true}, c.Must("file.delete", params{"path": "a/b.txt"})); diff != "" {
		t.Error(diff)
	}
	c.Fails(tea.NotFound, "file.delete", params{"path": "a/b.txt"})
	if got := c.Must("file.delete", params{"path": "a/b.txt", "missing_ok": true}); got["deleted"] != false {
		t.Errorf("deleting nothing gives %v", got)
	}
	if diff := cmp.Diff(params{"success": true, "exists": false}, c.Must("file.exists", params{"path": "a/b.txt"})); diff != "" {
		t.Error(diff)
	}
	put(t, dir, "file", "")
	if diff := cmp.Diff(params{"success": true, "exists": false}, c.Must("file.exists", params{"path": "file/below"})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(params{"success": true, "exists": true, "type": "directory"}, c.Must("file.exists", params{"path": "a"})); diff != "" {
		t.Error(diff)
	}
	if _, err := os.Stat(filepath.Join(dir, "a")); err != nil {
		t.Error(err)
	}
}

func TestReadEncodingsAndFormats(t *testing.T) {
	t.Parallel()
	c, dir := open(t)
	put(t, dir, "latin", "gr\xfcn")
	put(t, dir, "data.json", `{"id":9007199254740993}`)
	put(t, dir, "data.yaml", "# note\nlist: [1, 2.5, 0777, yes, null]\nwhen: 2026-01-31\n")
	put(t, dir, "data.csv", "a,b\r\n1,x\r\n")
	put(t, dir, "empty.yaml", "# nothing\n")
	put(t, dir, "broken.json", "{\n \"a\": }")
	put(t, dir, "broken.yaml", "a: [1,\nb: 2")
	put(t, dir, "broken.csv", "a,b\n1\n")
	put(t, dir, "bomb.yaml", "a: &a [1,1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\n")
	put(t, dir, "large", strings.Repeat("x", 1001))
	for _, test := range []struct {
		params params
		want   any
	}{
		{params{"path": "latin", "encoding": "latin-1"}, "grün"},
		{params{"path": "latin", "encoding": "base64"}, "Z3L8bg=="},
		{params{"path": "data.json", "parse": "json"}, params{"id": int64(9007199254740993)}},
		{params{"path": "data.json"}, `{"id":9007199254740993}`},
		{params{"path": "data.yaml", "parse": "yaml"}, params{"list": []any{int64(1), 2.5, int64(777), "yes", nil}, "when": "2026-01-31"}},
		{params{"path": "data.csv", "parse": "csv"}, []any{params{"a": "1", "b": "x"}}},
		{params{"path": "empty.yaml", "parse": "yaml"}, nil},
	} {
		if diff := cmp.Diff(test.want, c.Must("file.read", test.params)["content"]); diff != "" {
			t.Errorf("%v (-want +got):\n%s", test.params, diff)
		}
	}
	for _, test := range []struct {
		want    tea.ErrorType
		params  params
		message string
	}{
		{tea.ValidationError, params{"path": "latin"}, "latin-1"},
		{tea.ValidationError, params{"path": "broken.json", "parse": "json"}, "broken.json: invalid JSON at line 2, column 7"},
		{tea.ValidationError, params{"path": "broken.yaml", "parse": "yaml"}, "line 2"},
		{tea.ValidationError, params{"path": "broken.csv", "parse": "csv"}, "line 2"},
		{tea.ValidationError, params{"path": "bomb.yaml", "parse": "yaml"}, "aliases"},
		{tea.ValidationError, params{"path": "data.json", "parse": "xml"}, "csv"},
		{tea.ValidationError, params{"path": "latin", "encoding": "utf-16"}, "latin-1"},
		{tea.ResourceExhausted, params{"path": "large"}, "the limit is 1000"},
		{tea.NotFound, params{"path": "missing"}, "read missing: there is no such file or directory: /"},
		{tea.PermissionDenied, params{"path": "../x"}, ".."},
		{tea.PermissionDenied, params{"path": "/etc/passwd"}, "add its directory to settings.file.read"},
	} {
		if e := c.Fails(test.want, "file.read", test.params); !strings.Contains(e.Message, test.message) {
			t.Errorf("%v: %v, want %q in it", test.params, e, test.message)
		}
	}
}

func TestWriteEncodings(t *testing.T) {
	t.Parallel()
	c, dir := open(t)
	for encoding, content := range map[string]string{"latin-1": "grün", "base64": "Z3L8bg=="} {
		c.Must("file.write", params{"path": encoding, "content": content, "encoding": encoding})
		if got, err := os.ReadFile(filepath.Join(dir, encoding)); err != nil || string(got) != "gr\xfcn" {
			t.Errorf("%s writes %q, %v", encoding, got, err)
		}
	}
	c.Fails(tea.ValidationError, "file.write", params{"path": "x", "content": "€", "encoding": "latin-1"})
	c.Fails(tea.ValidationError, "file.write", params{"path": "x", "content": "*", "encoding": "base64"})
	c.Fails(tea.ResourceExhausted, "file.write", params{"path": "x", "content": strings.Repeat("x", 1001)})
	c.Fails(tea.PermissionDenied, "file.write", params{"path": "%2e%2e/x", "content": ""})
	c.Fails(tea.PermissionDenied, "file.append", params{"path": "..", "content": ""})
	c.Fails(tea.PermissionDenied, "file.delete", params{"path": "a/../../x"})
	c.Fails(tea.PermissionDenied, "file.list", params{"path": "../"})
	c.Fails(tea.PermissionDenied, "file.exists", params{"path": "file:///etc"})
}

func TestList(t *testing.T) {
	t.Parallel()
	c, dir := open(t)
	if err := os.MkdirAll(filepath.Join(dir, "sub/deep"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"b.csv", "a.txt", "sub/c.csv", "sub/deep/d.csv"} {
		put(t, dir, name, name)
	}
	for _, test := range []struct {
		params params
		want   []string
	}{
		{params{}, []string{"file a.txt", "file b.csv", "directory sub"}},
		{params{"pattern": "*.csv"}, []string{"file b.csv"}},
		{params{"pattern": "*.csv", "recursive": true}, []string{"file b.csv", "file sub/c.csv", "file sub/deep/d.csv"}},
		{params{"path": "sub"}, []string{"file sub/c.csv", "directory sub/deep"}},
		{params{"path": "sub/deep", "pattern": "x"}, nil},
		{params{"pattern": "*.{csv,txt}"}, []string{"file a.txt", "file b.csv"}},
		{params{"pattern": "{a,b}.{txt,md}"}, []string{"file a.txt"}},
	} {
		result := c.Must("file.list", test.params)
		var got []string
		for _, e := range result["entries"].([]any) {
			entry := e.(params)
			got = append(got, entry["type"].(string)+" "+entry["path"].(string))
		}
		if diff := cmp.Diff(test.want, got); diff != "" || result["count"] != int64(len(test.want)) {
			t.Errorf("%v gives count %v (-want +got):\n%s", test.params, result["count"], diff)
		}
	}
	c.Fails(tea.NotFound, "file.list", params{"path": "missing"})
	c.Fails(tea.ValidationError, "file.list", params{"path": "a.txt"})
	c.Fails(tea.ValidationError, "file.list", params{"pattern": "["})
	c.Fails(tea.ValidationError, "file.list", params{"pattern": "*.{a,[}"})
	c.Fails(tea.ValidationError, "file.list", params{"pattern": "*.{md"})
	c.Fails(tea.ValidationError, "file.list", params{"pattern": strings.Repeat("{a,b}", 20)})
	if e := c.Fails(tea.ValidationError, "file.list", params{"pattern": "sub/*.csv", "recursive": true}); !strings.Contains(e.Message, "recursive: true") {
		t.Errorf("a pattern with a slash, which matches no name, gives %v", e)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Call(ctx, "file.list", params{}); tea.AsError(err).Type != tea.Canceled {
		t.Errorf("a canceled listing gives %v", err)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, dir, "a", "here")
	c := actiontest.Open(t, fileactions.Bundle("1.0.0", dir), nil)
	if got := c.Must("file.read", params{"path": "a"})["content"]; got != "here" {
		t.Errorf("the default root gives %v", got)
	}
	c = actiontest.Open(t, fileactions.Bundle("1.0.0", dir), params{"file": params{"root": "missing"}})
	c.Fails(tea.NotFound, "file.read", params{"path": "a"})
	for _, bad := range []params{{"rot": "x"}, {"max_bytes": 0}, {"root": 1}} {
		if _, err := actiontest.TryOpen(t, fileactions.Bundle("1.0.0", dir), params{"file": bad}); err == nil {
			t.Errorf("settings.file %v are taken", bad)
		}
	}
}

func TestAbsolutePathsNeedANamedDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"root", "shown", "kept", "closed"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		put(t, dir, name+"/a", name)
	}
	for name, target := range map[string]string{"shown/out": "../closed/a", "shown/to-kept": "../kept/a", "kept/out": "../closed"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	c := actiontest.Open(t, fileactions.Bundle("1.0.0", filepath.Join(dir, "root")), params{"file": params{"read": []any{filepath.Join(dir, "shown")}, "write": []any{"../kept"}}})
	at := func(name string) params { return params{"path": filepath.Join(dir, name)} }
	for name, want := range map[string]string{"root/a": "root", "shown/a": "shown", "kept/a": "kept", "shown/to-kept": "kept"} {
		if got := c.Must("file.read", at(name))["content"]; got != want {
			t.Errorf("%s contains %v, want %s", name, got, want)
		}
	}
	for _, name := range []string{"closed/a", "shown/out", "kept/out/a", "kept/../closed/a", "shownest", "kept/%2e%2e/closed/a"} {
		c.Fails(tea.PermissionDenied, "file.read", params{"path": dir + "/" + name})
	}
	written := at("kept/b")
	written["content"] = "new"
	c.Must("file.write", written)
	c.Must("file.delete", at("kept/out")) // the link, not its target
	for name, setting := range map[string]string{"shown/b": "settings.file.write", "closed/b": "settings.file.write", "kept/../closed/b": ".."} {
		if e := c.Fails(tea.PermissionDenied, "file.append", params{"path": dir + "/" + name, "content": "x"}); !strings.Contains(e.Message, setting) {
			t.Errorf("%s: %v, want %s in it", name, e, setting)
		}
	}
	listed := c.Must("file.list", params{"path": filepath.Join(dir, "shown"), "pattern": "a"})["entries"].([]any)
	if got := listed[0].(params)["path"]; got != filepath.Join(dir, "shown/a") {
		t.Errorf("the listed path is %v", got)
	}
	c = actiontest.Open(t, fileactions.Bundle("1.0.0", dir), params{"file": params{"root": "/"}})
	if got := c.Must("file.read", at("shown/a"))["content"]; got != "shown" {
		t.Errorf("root: / reads %v", got)
	}
}

func TestLinksOfKernelDevicesAreFollowed(t *testing.T) {
	t.Parallel()
	const class = "/sys/class/net"
	if target, err := os.Readlink(class + "/lo"); err != nil || !strings.Contains(target, "devices") {
		t.Skip("this machine has no " + class + "/lo")
	}
	c := actiontest.Open(t, fileactions.Bundle("1.0.0", t.TempDir()), params{"file": params{"read": []any{class}}})
	if got := c.Must("file.read", params{"path": class + "/lo/ifindex"})["content"]; got != "1\n" {
		t.Errorf("read %q", got)
	}
	c.Fails(tea.PermissionDenied, "file.read", params{"path": "/sys/devices/virtual/net/lo/ifindex"})
}
