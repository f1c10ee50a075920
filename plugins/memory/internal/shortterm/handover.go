package shortterm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// handoverVersion is the version of the format of Export.
const handoverVersion = 1

// handed is a value in the format of Export.
type handed struct {
	Namespace string          `json:"namespace"`
	Key       string          `json:"key"`
	Value     json.RawMessage `json:"value"`
	// Left is the remaining time to live; 0 = until it is evicted.
	Left time.Duration `json:"left,omitempty"`
}

// header precedes the values.
type header struct {
	Version int `json:"version"`
	// At is the time of writing, see uptime.
	At     time.Duration `json:"at"`
	Values int           `json:"values"`
}

// Export writes the values, the least recently used first, as lines of JSON.
func (m *Memory) Export(w io.Writer) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock.Now()
	m.evict(now)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	err := enc.Encode(header{Version: handoverVersion, At: uptime(), Values: len(m.entries)})
	for at := m.used.Back(); at != nil && err == nil; at = at.Prev() {
		e := at.Value.(*entry)
		v := handed{Namespace: e.name.namespace, Key: e.name.key, Value: e.value}
		if !e.at.IsZero() {
			v.Left = e.at.Sub(now)
		}
		err = enc.Encode(&v)
	}
	if err != nil {
		return fmt.Errorf("export the short-term memory: %w", err)
	}
	return nil
}

// Import adds the values that another process exported. It keeps existing values,
// which are newer. Bound or Put evict values beyond the bounds.
func (m *Memory) Import(dec *json.Decoder) error {
	var head header
	if err := dec.Decode(&head); err != nil {
		return fmt.Errorf("import the short-term memory: %w", err)
	}
	if head.Version != handoverVersion {
		return fmt.Errorf("import the short-term memory: it has version %d, not %d", head.Version, handoverVersion)
	}
	passed := max(uptime()-head.At, 0)
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock.Now()
	for range head.Values {
		var v handed
		if err := dec.Decode(&v); err != nil {
			return fmt.Errorf("import the short-term memory: %w", errors.Join(err, io.ErrUnexpectedEOF))
		}
		e := &entry{name: name{v.Namespace, v.Key}, value: v.Value}
		if v.Left > 0 {
			e.at = now.Add(v.Left - passed)
		}
		if v.Value != nil && m.entries[e.name] == nil {
			m.put(e)
		}
	}
	return nil
}

// uptime returns the time since the start of the machine, which does not change
// with the clock, or the time of day if the system does not report it.
func uptime() time.Duration {
	text, err := os.ReadFile("/proc/uptime")
	if err == nil {
		number, _, _ := strings.Cut(string(text), " ")
		if seconds, err := strconv.ParseFloat(number, 64); err == nil {
			return time.Duration(seconds * float64(time.Second))
		}
	}
	return time.Duration(time.Now().UnixNano())
}
