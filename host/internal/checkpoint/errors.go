package checkpoint

import (
	"fmt"
	"strings"
)

// CorruptError reports a file that is not a journal, or whose damage cannot be
// the result of an interrupted write. The file was not changed.
type CorruptError struct {
	Path   string
	Offset int64 // where the damage was found
	Reason string
}

// Error names the file, the place and the damage.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("checkpoint %s is damaged at byte %d: %s; the file was left as it is", e.Path, e.Offset, e.Reason)
}

// NoStartError reports a journal that does not begin with the input of its run,
// so that the run cannot be resumed. The file was not changed.
type NoStartError struct {
	Path string
}

// Error names the file and the remedy.
func (e *NoStartError) Error() string {
	return fmt.Sprintf("checkpoint %s has no start record: the run's input was never written to it; start the run again and remove the file", e.Path)
}

// VersionError reports a file in a format that this program does not support,
// usually written by a newer program. The file was not changed.
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

// InUseError reports a run that is owned by a live process.
type InUseError struct {
	Path string
	PID  int // of the owner; 0 if unknown
}

// Error names the file and, if known, the owner.
func (e *InUseError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("%s is in use by another process", e.Path)
	}
	return fmt.Sprintf("%s is in use by process %d", e.Path, e.PID)
}

// AmbiguousError reports a prefix of several run ids.
type AmbiguousError struct {
	Prefix  string
	Matches []string
}

// Error lists some of the matching runs.
func (e *AmbiguousError) Error() string {
	const most = 5
	shown, more := e.Matches, ""
	if len(shown) > most {
		shown, more = shown[:most], fmt.Sprintf(" and %d more", len(e.Matches)-most)
	}
	return fmt.Sprintf("run %q is ambiguous: %s%s", e.Prefix, strings.Join(shown, ", "), more)
}

// PoisonedError reports a failure after which the content of the disk is
// unknown: a failed fsync, or a failed roll-back of a partial write. Nothing
// more is written; opening the run again recovers it.
type PoisonedError struct {
	Path string
	Err  error
}

// Error names the file and the failure.
func (e *PoisonedError) Error() string {
	return fmt.Sprintf("checkpoint %s can no longer be written after a failed write: %v", e.Path, e.Err)
}

// Unwrap returns the disk's error.
func (e *PoisonedError) Unwrap() error { return e.Err }
