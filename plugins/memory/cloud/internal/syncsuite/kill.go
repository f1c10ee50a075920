package syncsuite

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/memory"
)

// childVariable is the environment variable with the work of a process that is killed.
const childVariable = "TEA_SYNC_CHILD"

type work struct {
	Dir   string         `json:"dir"`
	Sync  map[string]any `json:"sync"`
	Round int            `json:"round"`
	// Tables reports whether the remote has tables.
	Tables bool `json:"tables"`
}

var readings = map[string]any{"name": "readings", "primary_key": []string{"id"}, "schema": map[string]any{"id": "string", "value": "int"}}

// writes returns the entries of a round, nil for a deletion: new entries, entries that every round changes, and an
// entry of an earlier round.
func (w work) writes() map[string]any {
	all := map[string]any{}
	for i := range 20 {
		all[fmt.Sprintf("new/%d/%d", w.Round, i)] = int64(i)
	}
	for i := range 5 {
		all[fmt.Sprintf("changed/%d", i)] = int64(w.Round)
	}
	if w.Round > 0 {
		all[fmt.Sprintf("new/%d/0", w.Round-1)] = nil
	}
	return all
}

// Child is the process that [Kill] kills, as a test named TestSyncChild: it writes
// to the memory of a device and then synchronises it until it is killed.
func Child(t *testing.T, option memory.Option) {
	var w work
	if text := os.Getenv(childVariable); text == "" {
		t.Skip("it is started by another test")
	} else if err := json.Unmarshal([]byte(text), &w); err != nil {
		t.Fatal(err)
	}
	d := Open(t, option, map[string]any{"engine": "sqlite", "path": w.Dir, "sync": w.Sync})
	for key, value := range w.writes() {
		if value == nil {
			d.Do("ltm.delete", map[string]any{"key": key})
		} else {
			d.Do("ltm.store", map[string]any{"key": key, "value": value})
		}
	}
	if w.Tables {
		d.Do("data.create_table", readings)
		for key, value := range w.writes() {
			if value == nil {
				d.Do("data.delete", map[string]any{"table": "readings", "keys": []string{key}})
			} else {
				d.Do("data.insert", map[string]any{"table": "readings", "on_conflict": "replace", "rows": []map[string]any{{"id": key, "value": value}}})
			}
		}
	}
	fmt.Fprintln(os.Stdout, "written")
	for {
		r := d.Do("memory.sync", nil)
		fmt.Fprintln(os.Stdout, "conflicts", r["conflicts"])
	}
}

// Kill kills a process repeatedly while it synchronises. In the end the remote and another device must have everything
// that it acknowledged, and no run may mistake its own earlier writes for those of another device.
func Kill(t *testing.T, r Remote) {
	t.Helper()
	kills := 12
	if text := os.Getenv("TEA_KILLS"); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatalf("TEA_KILLS: %v", err)
		}
	}
	dir := t.TempDir()
	other := r.Device(t, nil)
	want := map[string]any{}
	for round := range kills {
		w := work{Dir: dir, Sync: r.Settings, Round: round, Tables: !r.NoTables}
		killOne(t, w)
		maps.Copy(want, w.writes())
		other.Do("ltm.store", map[string]any{"key": fmt.Sprintf("other/%d", round), "value": round})
		if w.Tables {
			other.Do("data.create_table", readings)
			other.Do("data.insert", map[string]any{"table": "readings", "rows": []map[string]any{{"id": fmt.Sprintf("other/%d", round), "value": round}}})
		}
		want[fmt.Sprintf("other/%d", round)] = int64(round)
		other.Same("the other device", other.Do("memory.sync", nil), map[string]any{"conflicts": int64(0)})
	}
	maps.DeleteFunc(want, func(_ string, value any) bool { return value == nil })
	device := Open(t, r.Option, map[string]any{"engine": "sqlite", "path": dir, "sync": r.Settings})
	device.Same("the last sync", device.Do("memory.sync", nil), map[string]any{"conflicts": int64(0), "refused": []any{}})
	other.Same("the other device", other.Do("memory.sync", nil), map[string]any{"conflicts": int64(0), "refused": []any{}})
	for name, d := range map[string]Device{"the device": device, "the other device": other, "the server": r.Shared(t, nil)} {
		if diff := cmp.Diff(want, d.Values("")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if r.NoTables {
			continue
		}
		rows := map[string]any{}
		for id, row := range d.rows("readings") {
			rows[id] = row.(map[string]any)["value"] //nolint:forcetypeassert // as the schema says
		}
		if diff := cmp.Diff(want, rows); diff != "" {
			t.Errorf("rows of %s (-want +got):\n%s", name, diff)
		}
	}
}

// killOne starts a process and kills it at a random moment after its writes.
func killOne(t *testing.T, w work) {
	t.Helper()
	raw, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSyncChild$", "-test.v")
	cmd.Env = append(os.Environ(), childVariable+"="+string(raw))
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(output)
	for written := false; !written; written = lines.Text() == "written" {
		if !lines.Scan() {
			t.Fatalf("the process ended before it was killed: %v, %v", lines.Err(), cmd.Wait())
		}
		if text := lines.Text(); text != "" && text[0] == ' ' {
			t.Log(text)
		}
	}
	killed := time.AfterFunc(time.Duration(rand.Int64N(int64(150*time.Millisecond))), func() { _ = cmd.Process.Kill() }) //nolint:gosec // any moment
	defer killed.Stop()
	for lines.Scan() {
		if text := lines.Text(); text != "conflicts 0" {
			t.Errorf("round %d: %s", w.Round, text)
		}
	}
	if err := lines.Err(); err != nil && !errors.Is(err, os.ErrClosed) && !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the process was not killed")
	}
}
