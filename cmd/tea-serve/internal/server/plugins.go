package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/host/bundles"
)

const (
	// maxBundle is the maximum size of a bundle, and maxSignature of its
	// signature.
	maxBundle    = 512 << 20
	maxSignature = 64 << 10
	// uploadTimeout is how long a client has to send a bundle.
	uploadTimeout = 10 * time.Minute
	// uploadPrefix begins the names of upload directories, which are in stateDir.
	uploadPrefix = "upload-"
)

// getPlugins lists the plugins with their status, and the installed ones.
func (s *server) getPlugins(w http.ResponseWriter, _ *http.Request) error {
	text, err := json.Marshal(s.svc.PluginStatus())
	if err != nil {
		return err
	}
	installed, err := s.svc.InstalledPlugins()
	if err != nil {
		s.svc.Log.Warn("some plugins are damaged", "error", err)
	}
	return reply(w, http.StatusOK, map[string]any{"plugins": json.RawMessage(s.svc.Hide(strings.TrimSpace(string(text)))), "installed": installed})
}

// postPlugin installs an uploaded bundle and replaces the running version.
func (s *server) postPlugin(w http.ResponseWriter, r *http.Request) error {
	select {
	case s.uploads <- struct{}{}:
		defer func() { <-s.uploads }()
	default:
		return errInstalling
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(uploadTimeout)) // HTTP/1 has one
	r.Body = http.MaxBytesReader(w, r.Body, maxBundle+2*maxSignature)
	dir, err := os.MkdirTemp(filepath.Join(s.svc.Runs, stateDir), uploadPrefix)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "upload"+bundles.Suffix)
	name, err := receive(r, file)
	if err != nil {
		return err
	}
	return s.changePlugin(w, "installed", func() (*teacmd.PluginChange, error) { return s.svc.InstallPlugin(file, name) })
}

// maxUploads is how many bundles are received concurrently.
const maxUploads = 4

// postRollback activates the previous version of a plugin.
func (s *server) postRollback(w http.ResponseWriter, r *http.Request) error {
	return s.changePlugin(w, "rolled back", func() (*teacmd.PluginChange, error) { return s.svc.RollbackPlugin(r.PathValue("name")) })
}

// changePlugin changes a plugin and answers with the change.
func (s *server) changePlugin(w http.ResponseWriter, how string, change func() (*teacmd.PluginChange, error)) error {
	s.installing.Lock() // held during the change, not during the upload
	done, err := change()
	s.installing.Unlock()
	if err != nil {
		return pluginError(err)
	}
	s.changed("") // streams of the version before start again
	s.svc.Log.Info("plugin "+done.Name+" "+how, "version", done.Version, "before", done.Before)
	return reply(w, http.StatusOK, done)
}

var errInstalling = errors.New("other plugins are being installed; try again")

// pluginError adds a response status to the error of a failed change.
func pluginError(err error) error {
	switch {
	case full(err), isIO(err):
		return err
	case errors.As(err, new(*bundles.NotInstalledError)):
		return &statusError{http.StatusNotFound, err}
	case errors.Is(err, teacmd.ErrNoEarlierVersion):
		return &statusError{http.StatusConflict, err}
	case errors.As(err, new(*bundles.Refusal)), errors.As(err, new(*bundles.KeyError)):
		return &statusError{http.StatusForbidden, err}
	}
	return &statusError{http.StatusUnprocessableEntity, err}
}

// isIO reports whether an error comes from this machine and not from the bundle.
func isIO(err error) bool {
	path := (*os.PathError)(nil)
	if errors.As(err, &path) {
		return path.Op != "fork/exec" && errors.As(path.Err, new(syscall.Errno))
	}
	return errors.As(err, new(*os.LinkError)) || errors.As(err, new(*os.SyscallError))
}

// receive stores the bundle of a request in a file, with its signature next to it, and
// returns the client's name for the bundle.
func receive(r *http.Request, file string) (name string, err error) {
	parts, err := r.MultipartReader()
	if err != nil {
		return "", &statusError{http.StatusUnsupportedMediaType, errors.New("the Content-Type is not multipart/form-data; send the bundle as the part bundle and its signature as the part signature")}
	}
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			switch part.FormName() {
			case "bundle":
				name, err = cutName(part.FileName()), store(part, file, maxBundle)
			case "signature":
				err = store(part, file+bundles.SignatureSuffix, maxSignature)
			default:
				err = badRequest(fmt.Errorf("the part %.40q is not known; the parts are bundle and signature", part.FormName()))
			}
		}
		if err != nil {
			return "", uploadError(err)
		}
	}
	if name == "" {
		return "", badRequest(errors.New("the part bundle is missing"))
	}
	return name, nil
}

// cutName returns the name of a file for messages.
func cutName(name string) string {
	if name = fmt.Sprintf("%.100s", name); name == "" || name == "." {
		return "the bundle"
	}
	return name
}

// store writes a part to a new file.
func store(part *multipart.Part, file string, most int64) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return badRequest(fmt.Errorf("the part %s appears twice", part.FormName()))
	}
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(part, most+1))
	if err = errors.Join(err, f.Close()); err == nil && n > most {
		err = &http.MaxBytesError{Limit: most}
	}
	return err
}

// uploadError adds a response status to an error of the upload.
func uploadError(err error) error {
	large := (*http.MaxBytesError)(nil)
	switch {
	case errors.As(err, &large):
		return &statusError{http.StatusRequestEntityTooLarge, fmt.Errorf("the upload has more than %d bytes", large.Limit)}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &statusError{http.StatusRequestTimeout, fmt.Errorf("the bundle was not sent within %s", uploadTimeout)}
	case full(err), errors.As(err, new(*statusError)), errors.As(err, new(*os.PathError)):
		return err
	}
	return badRequest(fmt.Errorf("read the upload: %w", err))
}

// removeUploads removes the uploads that a killed server left.
func removeUploads(dir string) {
	left, _ := filepath.Glob(filepath.Join(dir, uploadPrefix+"*")) // the pattern is valid
	for _, path := range left {
		os.RemoveAll(path)
	}
}
