package checkpoint

import (
	"fmt"
	"strings"
)

// CorruptError says that a file is damaged in a way that no interrupted write
// explains, or is not a journal. The file has not been touched.
type CorruptError struct {
	Path   string
	Offset int64 // where the damage was found
	Reason string
}

// Error names the file, the place and the damage.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("checkpoint %s is damaged at byte %d: %s; the file was left as it is", e.Path, e.Offset, e.Reason)
}

// NoStartError says that a journal does not begin with the input of its run, so
// that the run cannot be resumed. The file has not been touched.
type NoStartError struct {
	Path string
}

// Error names the file and the remedy.
func (e *NoStartError) Error() string {
	return fmt.Sprintf("checkpoint %s has no start record: the run's input was never written to it; start the run again and remove the file", e.Path)
}

// VersionError says that a file was written in a format that this program
// does not support, usually by a newer one. The file has not been touched.
type VersionError struct {
	Path      string
	Version   int
	Supported int // the newest version that can be read
}

// Error names the file and both versions.
func (e *VersionError) Error() string {
	return fmt.Sprintf("checkpoint %s has format version %d, this tea reads up to %d: use the newer tea that wrote it; the file was left as it is",
		e.Path, e.Version, e.Supported)
}

// LockedError says that a run is in the hands of a live process.
type LockedError struct {
	Path string
	PID  int // of the owner; 0 where it is not known
}

// Error names the file and, where known, the owner.
func (e *LockedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("%s is in use by another process", e.Path)
	}
	return fmt.Sprintf("%s is in use by process %d", e.Path, e.PID)
}

// AmbiguousError says that the beginning of a run id fits several runs.
type AmbiguousError struct {
	Prefix  string
	Matches []string
}

// Error lists some of the runs that fit.
func (e *AmbiguousError) Error() string {
	const most = 5
	shown, more := e.Matches, ""
	if len(shown) > most {
		shown, more = shown[:most], fmt.Sprintf(" and %d more", len(e.Matches)-most)
	}
	return fmt.Sprintf("run %q is ambiguous: %s%s", e.Prefix, strings.Join(shown, ", "), more)
}

// PoisonedError says that the disk failed in a way that leaves unknown what it
// holds: a failed fsync, or a failed roll-back of a half-written record.
// Nothing more is written; opening the run again finds what is there.
type PoisonedError struct {
	Path string
	Err  error
}

// Error names the file and the failure.
func (e *PoisonedError) Error() string {
	return fmt.Sprintf("checkpoint %s cannot be written any more after a failed write: %v", e.Path, e.Err)
}

// Unwrap returns the failure of the disk.
func (e *PoisonedError) Unwrap() error { return e.Err }
