package runview

import (
	"bytes"
	"slices"
	"time"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
)

// maxFiles is how many files of a run are listed.
const maxFiles = 1000

// File is a file that a run has written.
type File struct {
	// File is its path, as the action has named it. Secrets in it are masked.
	File string `json:"file"`
	// Path is the execution of the node that wrote it last, and Call the action.
	Path      string    `json:"path"`
	Call      string    `json:"call"`
	WrittenAt time.Time `json:"written_at"`
	// Written is the number of bytes of the last call.
	Written int64 `json:"written,omitempty"`
	// Secrets reports that the parameters of the call had secrets.
	Secrets bool `json:"secrets,omitempty"`
	// Size is the present size, and nil if the file cannot be read: Note has the reason.
	Size *int64 `json:"size,omitempty"`
	Note string `json:"note,omitempty"`
}

// Files returns the files that a run has written, in the order of their last calls.
// events calls a function with each event of the run.
func Files(events func(fn func(line []byte) error) error) ([]File, error) {
	list := []File{}
	err := events(func(line []byte) error {
		if !bytes.Contains(line, []byte(`"event":"file"`)) { // most events are others
			return nil
		}
		var e flow.Event
		if err := e.UnmarshalJSON(line); err != nil || e.Type != flow.EventFile {
			return err
		}
		f := File{File: e.Text("file"), Path: e.Path, Call: e.Text("call"), Secrets: e.Field("secrets") == true, WrittenAt: e.Time.UTC()}
		f.Written, _ = e.Field("bytes").(int64)
		list = slices.DeleteFunc(list, func(old File) bool { return old.File == f.File })
		list = append(list, f)
		list = list[max(0, len(list)-maxFiles):]
		return nil
	})
	return list, err
}

// Inspect sets the sizes and notes of files.
func Inspect(root *host.FileRoot, list []File) {
	for i := range list {
		f := &list[i]
		info, err := root.Stat(f.File)
		switch typed := tea.AsError(err); {
		case typed != nil && typed.Type == tea.NotFound:
			f.Note = "The file does not exist any more, or a secret in its name is masked."
		case typed != nil:
			f.Note = "The file is not in the file root of the workflow."
		case !info.Mode().IsRegular():
			f.Note = "It is not a regular file any more."
		default:
			f.Size = new(info.Size())
			if info.ModTime().After(f.WrittenAt.Add(time.Second)) { // file systems round times
				f.Note = "The file was changed after the run had written it."
			}
		}
	}
}
