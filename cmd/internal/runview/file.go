package runview

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"slices"
	"time"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
)

// maxFiles bounds the files that are listed for a run: the newest are kept.
const maxFiles = 1000

// File is a file that a run has written.
type File struct {
	// File is the path that the action reported, with masked secrets.
	File string `json:"file"`
	// Path is the node execution that wrote the file last, and Call its action.
	Path      string    `json:"path"`
	Call      string    `json:"call"`
	WrittenAt time.Time `json:"written_at"`
	// Written is the number of bytes that the last call wrote.
	Written int64 `json:"written,omitempty"`
	// Secrets reports whether the parameters of a call that wrote the file contained
	// secrets. A later call can have appended to it.
	Secrets bool `json:"secrets,omitempty"`
	// Size is the current size. It is nil if the file cannot be read; Note has the reason.
	Size *int64 `json:"size,omitempty"`
	Note string `json:"note,omitempty"`
}

// Files returns the files that a run has written, in the order of their last calls.
// events calls a function with each event of the run.
func Files(events func(fn func(line []byte) error) error) ([]File, error) {
	list := []File{}
	secrets := map[string]bool{}
	err := events(func(line []byte) error {
		if !bytes.Contains(line, []byte(`"event":"file"`)) { // avoid decoding other events
			return nil
		}
		var e flow.Event
		if err := e.UnmarshalJSON(line); err != nil || e.Type != flow.EventFile {
			return err
		}
		f := File{File: e.Text("file"), Path: e.Path, Call: e.Text("call"), Secrets: e.Field("secrets") == true, WrittenAt: e.Time.UTC()}
		f.Written, _ = e.Field("bytes").(int64)
		if name := path.Clean(f.File); f.Secrets || secrets[name] {
			f.Secrets, secrets[name] = true, true
		}
		list = slices.DeleteFunc(list, func(old File) bool { return old.File == f.File })
		list = append(list, f)
		list = list[max(0, len(list)-maxFiles):]
		return nil
	})
	return list, err
}

// Inspect sets the sizes and notes of files. A file with two names has secrets under both.
func Inspect(root *host.FileRoot, list []File) {
	var secrets []fs.FileInfo
	for _, f := range list {
		if info, err := root.Stat(f.File); err == nil && f.Secrets {
			secrets = append(secrets, info)
		}
	}
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
			f.Secrets = f.Secrets || slices.ContainsFunc(secrets, func(other fs.FileInfo) bool { return os.SameFile(info, other) })
			if info.ModTime().After(f.WrittenAt.Add(time.Second)) { // file systems round times
				f.Note = "The file was changed after the run had written it."
			}
		}
	}
}
