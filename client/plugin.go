package client

import (
	"context"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"time"
)

// Plugin is a plugin that the server has called.
type Plugin struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Path    string `json:"path"`
	State   string `json:"state"`
	// Generation counts the processes of the plugin from 1.
	Generation int        `json:"generation"`
	PID        int        `json:"pid,omitempty"`
	Started    *time.Time `json:"started,omitempty"`
	// Calls that have begun, including Running, and calls that have failed.
	Calls       int64    `json:"calls"`
	Failures    int64    `json:"failures"`
	Crashes     int64    `json:"crashes"`
	Running     []string `json:"running,omitempty"`
	RSSBytes    int64    `json:"rss_bytes,omitempty"`
	MemoryBytes int64    `json:"memory_bytes,omitempty"`
	MemoryLimit int64    `json:"memory_limit,omitempty"`
	// LastCrash describes how the last process that was not stopped died.
	LastCrash string     `json:"last_crash,omitempty"`
	LastWords string     `json:"last_words,omitempty"`
	CrashedAt *time.Time `json:"crashed_at,omitempty"`
	// Refused is the reason why the plugin was not replaced by another version.
	Refused string `json:"refused,omitempty"`
}

// InstalledPlugin is a plugin that was installed from a bundle.
type InstalledPlugin struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// Earlier are the previous versions, oldest first.
	Earlier []string `json:"earlier"`
}

// PluginChange is a plugin that was replaced.
type PluginChange struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// Before is the version that was replaced; "" for a new plugin, and for a reinstalled
	// version.
	Before string `json:"before,omitempty"`
	// SignedBy is the ID of the key that verified the signature.
	SignedBy string `json:"signed_by,omitempty"`
}

// Plugins returns the plugins that the server has called, and the installed plugins.
func (c *Client) Plugins(ctx context.Context) ([]Plugin, []InstalledPlugin, error) {
	var list struct {
		Plugins   []Plugin          `json:"plugins"`
		Installed []InstalledPlugin `json:"installed"`
	}
	err := c.call(ctx, http.MethodGet, "/v1/plugins", nil, nil, nil, &list)
	return list.Plugins, list.Installed, err
}

// InstallPlugin installs a bundle and replaces the running version of its plugin. name is the
// file's name in messages; signature is nil for an unsigned bundle. The error is an [*Error]
// if the server refuses it; the previous version then remains.
func (c *Client) InstallPlugin(ctx context.Context, name string, bundle, signature io.Reader) (*PluginChange, error) {
	reader, writer := io.Pipe()
	form := multipart.NewWriter(writer)
	go func() {
		err := errors.Join(copyPart(form, "bundle", name, bundle), copyPart(form, "signature", name+".minisig", signature), form.Close())
		_ = writer.CloseWithError(err) // never fails
	}()
	defer func() { _ = reader.Close() }() // never fails
	change := new(PluginChange)
	return change, c.call(ctx, http.MethodPost, "/v1/plugins", nil, http.Header{"Content-Type": {form.FormDataContentType()}}, io.Reader(reader), change)
}

func copyPart(form *multipart.Writer, field, name string, from io.Reader) error {
	if from == nil {
		return nil
	}
	part, err := form.CreateFormFile(field, name)
	if err != nil {
		return err
	}
	_, err = io.Copy(part, from)
	return err
}

// RollbackPlugin returns to the previous version of a plugin. An [*Error] with the status 409
// reports that there is none.
func (c *Client) RollbackPlugin(ctx context.Context, name string) (*PluginChange, error) {
	change := new(PluginChange)
	return change, c.call(ctx, http.MethodPost, "/v1/plugins/"+url.PathEscape(name)+"/rollback", nil, nil, nil, change)
}
