package plugproc

import "runtime"

// forker starts processes from one thread that lives as long as it does. The
// kernel ties the parent-death signal to the thread that forked, not to the
// process: from a thread of the scheduler's pool, which may end at any time,
// plugins would be killed for no reason.
type forker struct{ jobs chan func() }

func newForker() *forker {
	f := &forker{jobs: make(chan func())}
	go func() {
		runtime.LockOSThread() // and never unlock: the thread ends with the goroutine
		for job := range f.jobs {
			job()
		}
	}()
	return f
}

// start runs a function that starts a process.
func (f *forker) start(fn func() error) error {
	result := make(chan error, 1)
	f.jobs <- func() { result <- fn() }
	return <-result
}

// close ends the thread, and with it the processes that it has started.
func (f *forker) close() { close(f.jobs) }
