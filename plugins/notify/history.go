package notify

import (
	"os"
	"path/filepath"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/filelock"
	"github.com/the-edge-agent/tea/sdk/x/statedir"
)

// claim locks the file for the id of a message, so that other runs and processes wait.
// The time of the file is when the message was sent; an empty file was not sent. The
// caller closes it.
func (c *Client) claim(id string) (f *os.File, sent time.Time, err error) {
	dir, err := statedir.Path(c.settings.State, "notify")
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil {
		f, err = os.OpenFile(filepath.Join(dir, id), os.O_RDWR|os.O_CREATE, 0o600)
	}
	if err == nil {
		err = filelock.Lock(f)
	}
	if err == nil {
		sent, err = c.sentAt(f)
	}
	if err != nil {
		return nil, sent, tea.Errorf(tea.ResourceExhausted, "the keys of sent messages cannot be kept: %w; set settings.notify.state to a directory that can be written", err).NotSent()
	}
	return f, sent, nil
}

// sentAt returns the time of a file, or zero. A time in the future, which a clock that was
// set back leaves, becomes the current time.
func (c *Client) sentAt(f *os.File) (time.Time, error) {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return time.Time{}, err
	}
	if now := c.now(); info.ModTime().After(now) {
		return now, os.Chtimes(f.Name(), now, now)
	}
	return info.ModTime(), nil
}

// maxWindow is the largest window_seconds. Older files are removed.
const maxWindow = 365 * 24 * time.Hour

// keep makes durable that a message was sent.
func (c *Client) keep(f *os.File) error {
	if _, err := f.WriteAt([]byte("sent\n"), 0); err != nil {
		return err
	}
	list, err := os.ReadDir(filepath.Dir(f.Name()))
	for _, entry := range list {
		if info, err := entry.Info(); err == nil && c.now().Sub(info.ModTime()) > maxWindow {
			_ = os.Remove(filepath.Join(filepath.Dir(f.Name()), entry.Name())) // the next message tries again
		}
	}
	if err != nil {
		return err
	}
	return f.Sync()
}
