package storetest

import (
	"io"
	"sync"
	"testing"
)

// Opened closes the result of a suite's open function before the next call in the
// same test and at the end of the test. The zero value is ready; it is safe for
// concurrent use.
type Opened[T io.Closer] struct {
	mu     sync.Mutex
	byTest map[string]T
}

// Again closes the test's open value, if there is one, and calls open.
func (o *Opened[T]) Again(t *testing.T, open func() (T, error)) T {
	t.Helper()
	o.mu.Lock()
	before, there := o.byTest[t.Name()]
	o.mu.Unlock()
	if there {
		if err := before.Close(); err != nil {
			t.Fatal(err)
		}
	}
	now, err := open()
	if err != nil {
		t.Fatal(err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.byTest == nil {
		o.byTest = map[string]T{}
	}
	o.byTest[t.Name()] = now
	if !there {
		t.Cleanup(func() {
			o.mu.Lock()
			defer o.mu.Unlock()
			if err := o.byTest[t.Name()].Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return now
}

// Dirs has a folder for each test. The zero value is ready; it is safe for
// concurrent use.
type Dirs struct {
	mu     sync.Mutex
	byTest map[string]string
}

// Of returns the folder of a test, the same folder at each call.
func (d *Dirs) Of(t *testing.T) string {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.byTest == nil {
		d.byTest = map[string]string{}
	}
	if d.byTest[t.Name()] == "" {
		d.byTest[t.Name()] = t.TempDir()
	}
	return d.byTest[t.Name()]
}
