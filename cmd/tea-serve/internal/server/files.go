package server

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"path"
	"slices"
	"strconv"

	"github.com/the-edge-agent/tea/cmd/internal/runview"
	"github.com/the-edge-agent/tea/host"
	tea "github.com/the-edge-agent/tea/sdk"
)

// withFiles calls do with the files that a run has written, and the file root of its
// workflow.
func (s *server) withFiles(id string, do func(list []runview.File, root *host.FileRoot, mask host.Mask) error) error {
	_, contents, err := s.contents(id)
	if err != nil {
		return err
	}
	list, err := runview.Files(func(fn func(line []byte) error) error {
		_, err := s.eachEvent(id, fn)
		return err
	})
	if err != nil {
		return err
	}
	wf, release, err := s.versionOf(contents)
	if err != nil {
		return err
	}
	defer release()
	mask, err := s.svc.Mask(wf)
	if err != nil {
		return err
	}
	root, err := wf.FileRoot(s.svc.Secrets())
	if err != nil {
		return err
	}
	return errors.Join(do(list, root, mask), root.Close())
}

// getFiles lists the files that a run has written.
func (s *server) getFiles(w http.ResponseWriter, r *http.Request) error {
	if err := knownQuery(r.URL.Query()); err != nil {
		return err
	}
	return s.withFiles(r.PathValue("id"), func(list []runview.File, root *host.FileRoot, _ host.Mask) error {
		runview.Inspect(root, list)
		return reply(w, http.StatusOK, map[string]any{"files": list})
	})
}

// getFile returns the content of a file that a run has written, with masked secrets, as a
// download that browsers do not interpret.
func (s *server) getFile(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	if err := knownQuery(query, "file"); err != nil {
		return err
	}
	file := query.Get("file")
	return s.withFiles(r.PathValue("id"), func(list []runview.File, root *host.FileRoot, mask host.Mask) error {
		if !slices.ContainsFunc(list, func(f runview.File) bool { return f.File == file }) {
			return &statusError{http.StatusNotFound, fmt.Errorf("the run has not written the file %.100q", file)}
		}
		data, err := root.Read(file, 0)
		if typed := tea.AsError(err); typed != nil {
			if typed.Type == tea.ResourceExhausted {
				return &statusError{http.StatusUnprocessableEntity, fmt.Errorf("the file is larger than settings.file.max_bytes")}
			}
			return &statusError{http.StatusNotFound, fmt.Errorf("the file %.100q cannot be read: it was removed, or it is outside of the file root", file)}
		}
		text := mask.Text(string(data))
		header := w.Header()
		header.Set("Content-Type", "application/octet-stream")
		header.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": path.Base(file)}))
		header.Set("Content-Security-Policy", "default-src 'none'; sandbox")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Cache-Control", "no-store")
		header.Set("Tea-Masked", strconv.FormatBool(text != string(data)))
		header.Set("Content-Length", strconv.Itoa(len(text)))
		_, _ = w.Write([]byte(text)) // the client is gone
		return nil
	})
}
