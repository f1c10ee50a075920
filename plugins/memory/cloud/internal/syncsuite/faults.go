package syncsuite

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/sdk/x/backoff"

	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/servertest"
)

// faults are the faults of connections to a store.
func faults() map[string]servertest.Toxic {
	all := map[string]servertest.Toxic{}
	for _, stream := range []string{"upstream", "downstream"} {
		all["latency "+stream] = servertest.Toxic{Type: "latency", Stream: stream, Attributes: map[string]any{"latency": 50, "jitter": 50}}
		all["bandwidth "+stream] = servertest.Toxic{Type: "bandwidth", Stream: stream, Attributes: map[string]any{"rate": 100}}
		all["slices "+stream] = servertest.Toxic{Type: "slicer", Stream: stream, Attributes: map[string]any{"average_size": 500, "size_variation": 400, "delay": 100}}
		all["half-open "+stream] = servertest.Toxic{Type: "timeout", Stream: stream, Attributes: map[string]any{"timeout": 0}}
		all["reset "+stream] = servertest.Toxic{Type: "reset_peer", Stream: stream, Attributes: map[string]any{"timeout": 10}}
		for _, bytes := range []int{100, 2000} {
			all[fmt.Sprint("cut after ", bytes, " ", stream)] = servertest.Toxic{Type: "limit_data", Stream: stream, Attributes: map[string]any{"bytes": bytes}}
		}
	}
	return all
}

// faultTime is how long a fault lasts before calls time out, and timeout how long they have afterwards.
const (
	faultTime = 700 * time.Millisecond
	timeout   = time.Minute
)

// Faults disturbs the connections to a store while a device writes to it and another one synchronises with it. No
// acknowledged write may be lost, and none may be done twice. behind returns the remote memory as seen through the
// proxy.
func Faults(t *testing.T, direct Remote, proxy *servertest.Proxied, behind Remote) {
	t.Helper()
	writer, device, server := behind.Shared(t, map[string]any{"timeout": 15}), behind.Device(t, nil), direct.Shared(t, nil)
	writer.Do("ltm.store", map[string]any{"key": "first", "value": 0})
	device.Do("memory.sync", nil)
	want := map[string]any{"first": int64(0)}
	n := 0
	for name, toxic := range faults() {
		n++
		remove := proxy.Add(t, toxic)
		var group sync.WaitGroup
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		key := fmt.Sprint("direct/", n)
		group.Go(func() { // repeated until the fault ends
			r, err := writer.Call(ctx, "ltm.store", map[string]any{"key": key, "value": n})
			if err == nil {
				writer.Same(name+": the write", r, map[string]any{"created": true})
				return
			}
			// It was not acknowledged, so it is repeated; it must be stored once.
			if _, err := writer.Call(t.Context(), "ltm.store", map[string]any{"key": key, "value": n}); err != nil {
				t.Errorf("%s: the write after the fault: %v", name, err)
			}
		})
		for i := range 20 {
			device.Do("ltm.store", map[string]any{"key": fmt.Sprintf("device/%d/%d", n, i), "value": i})
			want[fmt.Sprintf("device/%d/%d", n, i)] = int64(i)
		}
		device.Do("ltm.store", map[string]any{"key": "changed", "value": n})
		want[key], want["changed"] = int64(n), int64(n)
		group.Go(func() {
			short, cancel := context.WithTimeout(ctx, faultTime)
			defer cancel()
			if r, err := device.Call(short, "memory.sync", nil); err == nil {
				if device.Same(name+": the sync", r, map[string]any{"conflicts": int64(0)}); toxic.Type == "timeout" {
					t.Errorf("%s: synchronised although nothing passes", name)
				}
			}
			remove()
		})
		group.Wait()
		cancel()
		device.Same(name+": the sync afterwards", device.Do("memory.sync", nil), map[string]any{"conflicts": int64(0), "refused": []any{}})
	}
	reconnect(t, device, proxy, behind)
	want["background"] = int64(1)
	device.Same("in the end", device.Do("memory.sync", nil), map[string]any{"conflicts": int64(0)})
	for what, d := range map[string]Device{"the server": server, "the device": device} {
		if diff := cmp.Diff(want, d.Values("")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
}

// reconnect stops and resumes the network while a device that synchronises in the
// background stores an entry.
func reconnect(t *testing.T, device Device, proxy *servertest.Proxied, behind Remote) {
	t.Helper()
	proxy.Enable(t, false)
	away := maps.Clone(behind.Settings)
	away["background"], away["delay"] = true, 0
	background := Open(t, behind.Option, map[string]any{"engine": "sqlite", "path": t.TempDir(), "sync": away, "timeout": 10})
	background.Do("ltm.store", map[string]any{"key": "background", "value": 1})
	background.await("failing", func(s map[string]any) bool { return s["state"] == "failing" })
	short, cancel := context.WithTimeout(t.Context(), faultTime)
	defer cancel()
	if _, err := device.Call(short, "memory.sync", nil); err == nil {
		t.Error("synchronised with a server that cannot be reached")
	}
	proxy.Enable(t, true)
	background.await("synchronised", func(s map[string]any) bool {
		return s["pushed"] == int64(1) && s["changes"] == false && s["error"] == ""
	})
}

func (d Device) await(what string, reached func(status map[string]any) bool) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), timeout)
	defer cancel()
	for {
		status, _ := d.Do("memory.inspect", nil)["sync"].(map[string]any)
		if reached(status) {
			return
		}
		if backoff.Sleep(ctx, 10*time.Millisecond) != nil {
			d.t.Fatalf("never %s: %v", what, status)
		}
	}
}
