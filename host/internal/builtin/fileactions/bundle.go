package fileactions

import (
	"context"

	"github.com/the-edge-agent/tea/host/internal/builtin/fileroot"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
)

// Bundle returns the bundle file. Its root is workDir unless settings.file of
// the workflow sets another one.
func Bundle(version, workDir string) *tea.Bundle {
	return &tea.Bundle{
		Name: "file", Version: version, Description: "Reads and writes files below one directory.",
		Settings: map[string]*schema.Schema{fileroot.SettingsKey: schema.Of[fileroot.Settings]()},
		Open: func(_ context.Context, settings tea.Settings) (any, error) {
			files, err := fileroot.OpenLazily(settings, workDir)
			if err != nil {
				return nil, err
			}
			return &instance{Lazy: files}, nil
		},
		Actions: []tea.Action{
			tea.NewMethod("file.read", "Reads a file.", (*instance).read, tea.Idempotent(), tea.Reads()),
			tea.NewMethod("file.write", "Writes a file atomically.", (*instance).write, tea.Idempotent(), tea.WritesFiles("path")),
			tea.NewMethod("file.append", "Appends to a file.", (*instance).append, tea.WritesFiles("path")),
			tea.NewMethod("file.exists", "Reports whether a file or directory exists.", (*instance).exists, tea.Idempotent(), tea.Reads()),
			tea.NewMethod("file.list", "Lists a directory.", (*instance).list, tea.Idempotent(), tea.Reads()),
			tea.NewMethod("file.delete", "Deletes a file or an empty directory.", (*instance).delete),
		},
	}
}

// instance is the bundle opened with one set of settings.
type instance struct{ *fileroot.Lazy }
