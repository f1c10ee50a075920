package graph_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/plugins/graph"
	tea "github.com/the-edge-agent/tea/sdk"
)

// readFolder is the variable with the folder of a graph that a process reads.
const readFolder = "TEA_GRAPH_READ"

// outcome is what a process found in a graph.
type outcome struct {
	Digest  string
	Type    tea.ErrorType
	Message string
}

// readAll reads everything of a graph.
func readAll(dir string) outcome {
	failed := func(err error) outcome { return outcome{Type: tea.AsError(err).Type, Message: err.Error()} }
	path, err := json.Marshal(dir)
	if err != nil {
		return failed(err)
	}
	bundle := graph.Bundle()
	instance, err := bundle.NewInstance(context.Background(), tea.Settings{"graph_path": path})
	if err != nil {
		return failed(err)
	}
	digest := sha256.New()
	for _, call := range []struct {
		action string
		params object
	}{
		{"stats", object{}},
		{"export", object{}},
		{"search", object{"query": "engineer"}},
		{"vector_search", object{"embedding": []any{1.0, 0.0}}},
		{"neighbors", object{"entity_id": "e0", "depth": 3}},
	} {
		response, err := instance.Invoke(context.Background(), &tea.Request{Action: "graph." + call.action, Params: tea.ValuePayload(call.params)})
		var v any
		if err == nil {
			v, err = response.Result.Value()
		}
		if err != nil {
			return failed(errors.Join(err, instance.Close()))
		}
		result := v.(object)
		delete(result, "bytes")
		delete(result, "path")
		fmt.Fprintln(digest, result)
	}
	if err := instance.Close(); err != nil {
		return failed(err)
	}
	return outcome{Digest: hex.EncodeToString(digest.Sum(nil))}
}

// readInProcess is readAll in another process, which a native library can end.
func readInProcess(t *testing.T, dir string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), readFolder+"="+dir)
	cmd.WaitDelay = 10 * time.Second
	var failure bytes.Buffer
	cmd.Stderr = &failure
	text, err := cmd.Output()
	if err != nil {
		return outcome{Type: tea.PluginCrashed, Message: fmt.Sprintf("%v, %v: %.300s", err, ctx.Err(), &failure)}
	}
	var o outcome
	if err := json.Unmarshal(text, &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// A damaged database of the backend memory ended the process that read it, was exported
// in part, or failed with an error of JSON.
func TestADamagedDatabaseIsNotExported(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "graph")
	g := open(t, object{"backend": "memory", "path": dir})
	var entities, relations []any
	for i := range 30 {
		entities = append(entities, object{"entity_id": fmt.Sprintf("pump-%d", i), "text": "an engineer", "properties": object{"floor": i}})
		relations = append(relations, object{"from_entity": fmt.Sprintf("pump-%d", i), "relation_type": "feeds", "to_entity": fmt.Sprintf("pump-%d", (i*7+1)%30), "properties": object{"bar": i}})
	}
	g.call("store_entities", object{"entities": entities})
	g.call("store_relations", object{"relations": relations})
	g.close()
	const file = "graph.sqlite"
	whole := []byte(files(t, dir)[file])
	changes := 0
	for _, change := range []struct{ from, to string }{
		{`{"floor":17}`, `["floor":17}`},
		{`{"bar":17}`, `{"bar":17 `},
		{"pump-17", "pump=17"},
		{"feeds", "fee\x00s"},
	} {
		for at := 0; ; at++ {
			next := bytes.Index(whole[at:], []byte(change.from))
			if next < 0 {
				break
			}
			at += next
			copied := filepath.Join(t.TempDir(), "graph")
			if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			text := bytes.Clone(whole)
			copy(text[at:], change.to)
			if err := os.WriteFile(filepath.Join(copied, file), text, 0o600); err != nil {
				t.Fatal(err)
			}
			if o := readInProcess(t, copied); o.Type == tea.PluginCrashed {
				t.Errorf("%s at %d: %+v", change.from, at, o)
			}
			_, err := open(t, object{"path": copied}).try("export", object{})
			if e := tea.AsError(err); err == nil || e.Type != tea.InternalError || !strings.Contains(e.Message, file) || !strings.Contains(e.Message, "damaged") || !strings.Contains(e.Message, "restore a backup") {
				t.Errorf("%s at %d: %v", change.from, at, err)
			}
			changes++
		}
	}
	same(t, "changes", changes, 6)
}

// damages are what happens to files.
var damages = map[string]func(text []byte) []byte{
	"empty":           func([]byte) []byte { return nil },
	"cut in half":     func(b []byte) []byte { return b[:len(b)/2] },
	"without its end": func(b []byte) []byte { return b[:len(b)-1] },
	"zero":            func(b []byte) []byte { clear(b); return b },
	"a page of zeros": func(b []byte) []byte {
		page := len(b) / 2 / 4096 * 4096
		clear(b[page:min(len(b), page+4096)])
		return b
	},
	"a byte of the header": func(b []byte) []byte { b[4] ^= 0x10; return b },
	"a byte in the middle": func(b []byte) []byte { b[len(b)/2+100] ^= 0x10; return b },
	"of another program":   func([]byte) []byte { return bytes.Repeat([]byte("a text of someone else\n"), 1000) },
}

// A damaged file is an error, unless the database cannot see it: no process ends
// or hangs. The backends cypher and cozo have a checksum of a graph that was closed.
func TestDamagedFilesAreRefused(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		backend, dir := g.settings["graph"].(object)["backend"], g.settings["graph"].(object)["path"].(string)
		var entities, relations []any
		for i := range 300 {
			entities = append(entities, object{"entity_id": fmt.Sprintf("e%d", i), "text": fmt.Sprintf("engineer number %d", i), "embedding": []any{float64(i), 1.0}})
			relations = append(relations, object{"from_entity": fmt.Sprintf("e%d", i), "relation_type": "knows", "to_entity": fmt.Sprintf("e%d", (i*7+1)%300)})
		}
		g.call("store_entities", object{"entities": entities})
		g.call("store_relations", object{"relations": relations})
		g.close()
		want := readInProcess(t, dir)
		if want.Digest == "" {
			t.Fatal(want)
		}
		for file, text := range files(t, dir) {
			if file == "owner.lock" {
				continue
			}
			for name, damage := range damages {
				if len(text) < 200 && strings.HasPrefix(name, "a ") {
					continue
				}
				copied := filepath.Join(t.TempDir(), "graph")
				err := os.CopyFS(copied, os.DirFS(dir))
				if err == nil {
					err = os.WriteFile(filepath.Join(copied, file), damage([]byte(text)), 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
				switch o := readInProcess(t, copied); {
				case o.Digest == want.Digest:
				case o.Type == tea.ValidationError || o.Type == tea.InternalError || o.Type == tea.NotFound && backend == "memory":
				case o.Digest != "" && strings.HasPrefix(name, "a ") && backend == "memory":
				default:
					t.Errorf("%s, %s: %+v", file, name, o)
				}
			}
			inPlace := filepath.Join(t.TempDir(), "graph")
			err := os.CopyFS(inPlace, os.DirFS(dir))
			if err == nil {
				err = errors.Join(os.Remove(filepath.Join(inPlace, file)), os.Mkdir(filepath.Join(inPlace, file), 0o700))
			}
			if err != nil {
				t.Fatal(err)
			}
			if o := readInProcess(t, inPlace); o.Type != tea.ValidationError && o.Type != tea.InternalError && o.Type != tea.PermissionDenied {
				t.Errorf("%s is a folder: %+v", file, o)
			}
		}
	})
}
