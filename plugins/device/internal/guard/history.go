package guard

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/atomicfile"
	"github.com/the-edge-agent/tea/sdk/x/filelock"
	"github.com/the-edge-agent/tea/sdk/x/statedir"
)

const (
	historyFormat = 1
	// window is the time over which per_minute counts.
	window = time.Minute
	// lockTimeout bounds the wait for other writes under the same rule.
	lockTimeout = 30 * time.Second
	// maxTargets bounds the number of targets whose last value is kept for a rule
	// with wildcards.
	maxTargets = 1000
)

// history has the writes under a rule. It is a file, so that the limits hold across runs and processes. An open history
// is locked.
type history struct {
	Format int `json:"format"`
	// Setting is the path of the rule.
	Setting string `json:"setting"`
	// Writes are the times of the last writes in milliseconds since 1970.
	Writes []int64 `json:"writes,omitempty"`
	// Values are the smallest and the largest value that a target can have. They differ if the
	// outcome of a write is unknown.
	Values map[string][]float64 `json:"values,omitempty"`

	path string
	lock *os.File
	// clockBack means that the clock was set back since a write.
	clockBack bool
}

// open locks and reads the history of a rule. The caller closes it.
func (g *Guards) open(ctx context.Context, w Write) (*history, error) {
	setting := w.Setting
	dir, err := statedir.Path(g.settings.State, "device")
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return nil, historyError(setting, err)
	}
	name := sha256.Sum256([]byte(w.Machine + "\x00" + setting))
	h := &history{path: filepath.Join(dir, hex.EncodeToString(name[:8])+".json")}
	h.lock, err = filelock.Own(ctx, h.path+".lock", lockTimeout, false)
	if held := (*filelock.HeldError)(nil); errors.As(err, &held) {
		return nil, NotSent(tea.Errorf(tea.RateLimited, "another write under %s did not end within %s: %w", setting, lockTimeout, err))
	}
	if err != nil {
		return nil, historyError(setting, err)
	}
	if err := h.read(setting); err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

func historyError(setting string, err error) error {
	return NotSent(tea.Errorf(tea.ResourceExhausted, "the earlier writes that %s limits cannot be kept: %w; set settings.device.state to a directory that can be written", setting, err))
}

// read reads the file. A damaged file is an error, because ignoring it would lift the limits.
func (h *history) read(setting string) error {
	data, err := os.ReadFile(h.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return historyError(setting, err)
	default:
		if err = json.Unmarshal(data, h); err != nil || h.Format != historyFormat {
			return NotSent(tea.Errorf(tea.InternalError, "%s, the earlier writes that %s limits, is damaged or of a newer version; check the machine, then remove the file", h.path, setting))
		}
	}
	h.Format, h.Setting = historyFormat, setting
	return nil
}

// wait returns how long a write has to wait until fewer than n were made in the window;
// 0 if it has not. A time in the future, which a clock that was set back leaves, counts
// as now.
func (h *history) wait(now time.Time, n int) time.Duration {
	at := now.UnixMilli()
	h.Writes = slices.DeleteFunc(h.Writes, func(t int64) bool { return t <= at-window.Milliseconds() })
	for i, t := range h.Writes {
		h.clockBack = h.clockBack || t > at
		h.Writes[i] = min(t, at)
	}
	if len(h.Writes) < n {
		return 0
	}
	slices.Sort(h.Writes)
	return time.Duration(h.Writes[len(h.Writes)-n]+window.Milliseconds()-at) * time.Millisecond
}

// record stores a write before it is sent.
func (h *history) record(now time.Time, w Write) error {
	if w.Rule.PerMinute > 0 {
		h.Writes = append(h.Writes, now.UnixMilli())
	}
	if w.Rule.MaxStep != nil && w.Current == nil {
		if _, known := h.Values[w.Target]; !known && len(h.Values) >= maxTargets {
			return refusal("%s has more than %d targets, whose last values %s.max_step needs; use topics with fewer wildcards", w.Setting, maxTargets, w.Setting)
		}
		if h.Values == nil {
			h.Values = map[string][]float64{}
		}
		values := slices.Concat(h.Values[w.Target], w.numbers)
		h.Values[w.Target] = slices.Compact([]float64{slices.Min(values), slices.Max(values)})
	}
	return h.save()
}

// settle stores the value that a target has after a write; before are its values before.
func (h *history) settle(w Write, before []float64, err error) {
	if w.Rule.MaxStep == nil || w.Current != nil {
		return
	}
	after := w.numbers
	switch {
	case err != nil && tea.AsError(err).Details[effect] == "unknown":
		return
	case err != nil:
		after = before
	}
	if slices.Equal(h.Values[w.Target], after) {
		return
	}
	if h.Values[w.Target] = after; after == nil {
		delete(h.Values, w.Target)
	}
	_ = h.save() // otherwise both values count
}

// save makes the history durable.
func (h *history) save() error {
	if err := atomicfile.Write(h.path, 0o600, func(to io.Writer) error { return json.NewEncoder(to).Encode(h) }); err != nil {
		return historyError(h.Setting, err)
	}
	return nil
}

func (h *history) close() { _ = filelock.Close(h.lock) }
