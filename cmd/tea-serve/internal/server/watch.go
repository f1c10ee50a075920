package server

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/the-edge-agent/tea/host"
)

// watchInterval is the interval at which directories are read. Kernel notifications
// do not work on all file systems.
const watchInterval = time.Second

// watcher finds new files in directories.
type watcher struct {
	s    *server
	next time.Time
	// stamps are the stamps of the last scan, by trigger and name. A file whose stamp
	// changes is still being written.
	stamps map[string]map[string]string
	// missing are processed files that are missing from an empty directory, by trigger and
	// name: its file system may not be mounted.
	missing map[string]bool
	// notUTF8 holds the files whose names are not UTF-8, by trigger and name.
	notUTF8 map[string]bool
	// sums are the digests of changed files, by trigger and name.
	sums map[string]fileSum
}

func newWatcher(s *server) *watcher {
	return &watcher{s: s, stamps: map[string]map[string]string{}, sums: map[string]fileSum{}, missing: map[string]bool{}, notUTF8: map[string]bool{}}
}

// scan starts runs for new files, and returns when to scan again.
func (w *watcher) scan(now time.Time) time.Time {
	triggers := w.s.catalog.triggers(host.TriggerWatch)
	if len(triggers) == 0 {
		return now.Add(maxSleep)
	}
	if now.Before(w.next) && w.next.Sub(now) <= watchInterval {
		return w.next
	}
	w.next = now.Add(watchInterval)
	for _, t := range triggers {
		problem := ""
		if err := w.scanDir(t); err != nil {
			problem = err.Error()
		}
		w.s.mu.Lock()
		before := w.s.unwatched[t.id]
		w.s.unwatched[t.id] = problem
		w.s.mu.Unlock()
		if problem != before && problem != "" {
			w.s.svc.Log.Warn(fmt.Sprintf("the trigger %q of %s: %s", t.Name, t.workflow, problem))
		}
	}
	return w.next
}

func (w *watcher) scanDir(t *trigger) error {
	entries, err := os.ReadDir(t.dir)
	if err != nil {
		return fmt.Errorf("the directory cannot be read: %w", err)
	}
	var problem error
	unknown, before, now := 0, w.stamps[t.id], map[string]string{}
	w.stamps[t.id] = now
	for _, e := range entries {
		w.s.recordProgress() // many large files count as progress
		if strings.HasPrefix(e.Name(), ".") || !e.Type().IsRegular() || !t.matches(e.Name()) {
			continue
		}
		if !utf8.ValidString(e.Name()) {
			w.reportOdd(t, e.Name())
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue // it was removed
		}
		stamp := fmt.Sprintf("%d %d", info.Size(), info.ModTime().UnixNano())
		now[e.Name()] = stamp
		if before == nil && w.s.lost && w.seen(t, e.Name()) == "" {
			unknown++
			if err := w.add(&entry{File: &fileSeen{t.id, e.Name(), stamp + " "}}); err != nil {
				return err
			}
			continue
		}
		seen, sum, _ := cutLast(w.seen(t, e.Name()))
		if seen == stamp {
			delete(w.missing, t.id+"\x00"+e.Name())
			continue
		}
		if before[e.Name()] != stamp {
			continue
		}
		content, err := w.sum(t, e.Name(), stamp)
		if err != nil {
			problem = fmt.Errorf("a file cannot be read: %w", err)
			continue
		}
		done := []*entry{{File: &fileSeen{t.id, e.Name(), stamp + " " + content}}}
		if content == sum && content != "" && !w.missing[t.id+"\x00"+e.Name()] { // only its time has changed
			if err := w.add(done...); err != nil {
				return err
			}
			continue
		}
		event := t.event(map[string]any{
			"path": filepath.ToSlash(filepath.Join(t.eventDir, e.Name())), "name": e.Name(), "size": info.Size(), "modified_at": info.ModTime().UTC().Format(time.RFC3339Nano),
		})
		err = w.s.fire(t, event, request{also: done})
		if errors.Is(err, errQueueFull) || errors.Is(err, errSkipped) || errors.Is(err, errStopping) || errors.As(err, new(*unwritable)) {
			return nil // the next scan retries
		}
		delete(w.sums, t.id+"\x00"+e.Name())
		delete(w.missing, t.id+"\x00"+e.Name())
	}
	if unknown > 0 {
		w.s.svc.Log.Warn(fmt.Sprintf("the trigger %q of %s skips %d files in %s: the server's state was missing, so they may have been processed before; to process a file, run `touch` on it", t.Name, t.workflow, unknown, t.dir))
	}
	w.forget(t, now)
	return problem
}

// add appends changes to the ledger without waiting for the disk.
func (w *watcher) add(entries ...*entry) error {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	_, err := w.s.led.add(false, entries...)
	return err
}

// reportOdd logs once that the name of a file is not UTF-8.
func (w *watcher) reportOdd(t *trigger, name string) {
	if key := t.id + "\x00" + name; !w.notUTF8[key] {
		w.notUTF8[key] = true
		w.s.svc.Log.Warn(fmt.Sprintf("the trigger %q of %s does not process the file %q of %s: its name is not UTF-8, so it cannot be part of an event; rename it", t.Name, t.workflow, name, t.dir))
	}
}

// maxSum is the maximum size of a file whose content is compared with the last
// version.
const maxSum = 64 << 20

// sum returns the digest of a file; "" if it is too large. It reads a file that waits
// for the queue only once.
func (w *watcher) sum(t *trigger, name, stamp string) (string, error) {
	key := t.id + "\x00" + name
	if known := w.sums[key]; known.stamp == stamp {
		return known.sum, nil
	}
	f, err := os.Open(filepath.Join(t.dir, name))
	if err != nil {
		return "", err
	}
	defer f.Close()
	hash := sha256.New()
	n, err := io.Copy(hash, io.LimitReader(f, maxSum+1))
	if err != nil {
		return "", err
	}
	sum := ""
	if n <= maxSum {
		sum = hex.EncodeToString(hash.Sum(nil)[:16])
	}
	w.sums[key] = fileSum{stamp, sum}
	return sum, nil
}

// fileSum is the digest of a version of a file.
type fileSum struct{ stamp, sum string }

// cutLast splits a text at the last space.
func cutLast(text string) (before, after string, found bool) {
	at := strings.LastIndexByte(text, ' ')
	if at < 0 {
		return text, "", false
	}
	return text[:at], text[at+1:], true
}

// matches reports whether the trigger applies to a file.
func (t *trigger) matches(name string) bool {
	if t.Watch.Pattern == "" {
		return true
	}
	ok, _ := path.Match(t.Watch.Pattern, name) // the pattern was checked
	return ok
}

func (w *watcher) seen(t *trigger, name string) string {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	return w.s.led.state.files[t.id][name]
}

// forget removes deleted files from the ledger, unless the directory is empty.
func (w *watcher) forget(t *trigger, now map[string]string) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	for name := range w.s.led.state.files[t.id] {
		if _, ok := now[name]; ok {
			continue
		}
		if key := t.id + "\x00" + name; len(now) == 0 {
			w.missing[key] = true
		} else {
			delete(w.missing, key)
			_, _ = w.s.led.add(false, &entry{File: &fileSeen{Trigger: t.id, Name: name}}) // it is retried
		}
	}
}
