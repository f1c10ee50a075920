package memory

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/confine"
	"github.com/the-edge-agent/tea/sdk/x/filter"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/file"
	"github.com/the-edge-agent/tea/plugins/memory/internal/place"
	"github.com/the-edge-agent/tea/plugins/memory/internal/session"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// maxFile is the largest file that fits into a payload as base64.
const maxFile = 45 << 20

func fileActions() []tea.Action {
	return []tea.Action{
		tea.NewMethod("memory.file_store", "Stores a file.", writes((*Memory).FileStore), tea.Idempotent()),
		tea.NewMethod("memory.file_retrieve", "Returns a file and its content.", (*Memory).FileRetrieve, tea.Idempotent(), tea.Reads()),
		tea.NewMethod("memory.file_list", "Lists files by their paths.", (*Memory).FileList, tea.Idempotent(), tea.Reads()),
		tea.NewMethod("memory.file_delete", "Removes a file.", writes((*Memory).FileDelete), tea.Idempotent()),
	}
}

// place checks a path and, if a user is given, that its session does not belong
// to another user.
func (m *Memory) place(ctx context.Context, path, session, user string) (place.Place, error) {
	at, err := place.Of(path, session)
	if err != nil {
		return place.Place{}, err
	}
	return at, m.checkOwner(ctx, at.Session, user)
}

func (m *Memory) checkOwner(ctx context.Context, session, user string) error {
	if session == "" || user == "" {
		return nil
	}
	s, err := m.folder.sessions.Get(ctx, session)
	if err != nil {
		return err
	}
	if s.OfAnother(user) {
		return tea.Errorf(tea.PermissionDenied, "session %q belongs to another user", session)
	}
	return nil
}

// write runs fn with the full path. The session of the path stays active
// meanwhile.
func (m *Memory) write(ctx context.Context, p place.Place, fn func(whole string) error) error {
	if p.Session == "" {
		return fn(p.Path)
	}
	return m.folder.sessions.Write(ctx, p.Session, func(prefix string) error { return fn(prefix + p.Path) })
}

// FileView is a file as actions show it.
type FileView struct {
	Path        string          `json:"path"`
	Hash        string          `json:"hash" doc:"SHA-256 of the content"`
	Size        int64           `json:"size" doc:"in bytes"`
	ContentType string          `json:"content_type"`
	Lines       int             `json:"lines" doc:"0 if the file is not text"`
	Tokens      int             `json:"tokens" doc:"as counted by cl100k_base; 0 if the file is not text"`
	Metadata    json.RawMessage `json:"metadata" doc:"null if there is none"`
	SessionID   string          `json:"session_id" doc:"empty if the file does not belong to a session"`
	Archived    bool            `json:"archived" doc:"true if its session is archived"`
	CreatedAt   string          `json:"created_at"`
	UpdatedAt   string          `json:"updated_at"`
	Damaged     bool            `json:"damaged,omitempty" doc:"true if the description of the file is damaged; only path is set then. Store the file again or delete it"`
}

func fileView(f file.File) FileView {
	if f.Damaged {
		return FileView{Path: f.Path, Metadata: orNull(nil), Archived: f.Archived(), Damaged: true}
	}
	return FileView{
		Path: f.Path, Hash: f.Hash, Size: f.Size, ContentType: f.Type, Lines: f.Lines, Tokens: f.Tokens, Metadata: orNull(f.Metadata), SessionID: f.SessionID,
		Archived: f.Archived(), CreatedAt: clock.Text(f.CreatedAt.Time), UpdatedAt: clock.Text(f.UpdatedAt.Time),
	}
}

// FileStoreParams are the parameters of memory.file_store.
type FileStoreParams struct {
	Path          string          `json:"path" minLength:"1" doc:"relative path of the file, with slashes"`
	Content       *string         `json:"content,omitempty" doc:"content as text; alternative to content_base64"`
	ContentBase64 *string         `json:"content_base64,omitempty" doc:"content as Base64"`
	ContentType   string          `json:"content_type,omitempty" maxLength:"200" doc:"media type; default from the extension or the content"`
	Metadata      json.RawMessage `json:"metadata,omitempty" doc:"object to filter by"`
	SessionID     string          `json:"session_id,omitempty" doc:"active session that the file belongs to; the whole path then begins with sessions/ID/"`
	UserID        string          `json:"user_id,omitempty" doc:"user on whose behalf the call is made; files in sessions of other users are refused"`
}

// FileStoreResult is the result of memory.file_store.
type FileStoreResult struct {
	Success bool `json:"success"`
	Created bool `json:"created" doc:"false if the file existed"`
	Changed bool `json:"changed" doc:"false if content, type and metadata were the same before"`
	FileView
}

// FileStore is the action memory.file_store.
func (m *Memory) FileStore(ctx context.Context, _ *tea.Request, p FileStoreParams) (*FileStoreResult, error) {
	at, err := m.place(ctx, p.Path, p.SessionID, p.UserID)
	if err != nil {
		return nil, err
	}
	if at.Archived {
		return nil, tea.Errorf(tea.ValidationError, "the path %q is in the archive, which is read-only; session.restore makes its session active again", p.Path)
	}
	content, err := contentOf("memory.file_store", p.Content, p.ContentBase64)
	if err != nil {
		return nil, err
	}
	var stored file.Stored
	err = m.write(ctx, at, func(whole string) (err error) {
		stored, err = m.folder.files.Store(ctx, file.Draft{Path: whole, Content: content, Type: p.ContentType, Metadata: objectOrNone(p.Metadata), SessionID: at.Session})
		return err
	})
	if err != nil {
		return nil, err
	}
	return &FileStoreResult{Success: true, Created: stored.Created, Changed: !stored.Unchanged, FileView: fileView(stored.File)}, nil
}

// contentOf returns the content of a call, which is given as text or as base64.
func contentOf(action string, text, encoded *string) (content []byte, err error) {
	switch {
	case (text == nil) == (encoded == nil):
		return nil, tea.Errorf(tea.ValidationError, "%s needs content or content_base64, but not both", action)
	case text != nil:
		content = []byte(*text)
	default:
		if content, err = base64.StdEncoding.DecodeString(*encoded); err != nil {
			return nil, tea.Errorf(tea.ValidationError, "content_base64 is not valid Base64: %w", err)
		}
	}
	if len(content) > maxFile {
		return nil, tea.Errorf(tea.ValidationError, "the content is too large: %d bytes (limit %d)", len(content), maxFile)
	}
	return content, nil
}

// FileRetrieveParams are the parameters of memory.file_retrieve.
type FileRetrieveParams struct {
	Path      string `json:"path" minLength:"1"`
	SessionID string `json:"session_id,omitempty" doc:"session of the file, which can be archived"`
	UserID    string `json:"user_id,omitempty" doc:"user on whose behalf the call is made; files in sessions of other users are refused"`
	Encoding  string `json:"encoding,omitempty" default:"auto" enum:"auto,text,base64" doc:"form of the content; auto: text if the file is text, otherwise Base64"`
}

// FileRetrieveResult is the result of memory.file_retrieve.
type FileRetrieveResult struct {
	Success  bool   `json:"success"`
	Content  string `json:"content"`
	Encoding string `json:"encoding" enum:"text,base64"`
	FileView
}

// FileRetrieve is the action memory.file_retrieve.
func (m *Memory) FileRetrieve(ctx context.Context, _ *tea.Request, p FileRetrieveParams) (*FileRetrieveResult, error) {
	at, err := m.place(ctx, p.Path, p.SessionID, p.UserID)
	if err != nil {
		return nil, err
	}
	if at.Session != "" {
		if _, err := m.folder.sessions.Sweep(ctx); err != nil { // archives expired sessions
			return nil, err
		}
	}
	found, content, err := m.folder.files.Read(ctx, at.Whole())
	if errors.Is(err, store.ErrNotFound) {
		return nil, tea.Errorf(tea.NotFound, "there is no file %q", at.Whole())
	}
	if err != nil {
		return nil, err
	}
	r := &FileRetrieveResult{Success: true, FileView: fileView(found)}
	switch {
	case p.Encoding == "text" && !found.Text:
		return nil, tea.Errorf(tea.ValidationError, "%s is not UTF-8 text (%s); retrieve it with encoding: base64", found.Path, found.Type)
	case p.Encoding != "base64" && found.Text:
		r.Content, r.Encoding = string(content), "text"
	default:
		r.Content, r.Encoding = base64.StdEncoding.EncodeToString(content), "base64"
	}
	return r, nil
}

// FileDeleteParams are the parameters of memory.file_delete.
type FileDeleteParams struct {
	Path      string `json:"path" minLength:"1"`
	SessionID string `json:"session_id,omitempty" doc:"active session of the file"`
	UserID    string `json:"user_id,omitempty" doc:"user on whose behalf the call is made; files in sessions of other users are refused"`
}

// FileDeleteResult is the result of memory.file_delete.
type FileDeleteResult struct {
	Success bool   `json:"success"`
	Deleted bool   `json:"deleted" doc:"false if the file did not exist"`
	Path    string `json:"path"`
}

// FileDelete is the action memory.file_delete.
func (m *Memory) FileDelete(ctx context.Context, _ *tea.Request, p FileDeleteParams) (*FileDeleteResult, error) {
	at, err := m.place(ctx, p.Path, p.SessionID, p.UserID)
	if err != nil {
		return nil, err
	}
	r := &FileDeleteResult{Success: true}
	err = m.write(ctx, at, func(whole string) (err error) {
		r.Path = whole
		r.Deleted, err = m.folder.files.Delete(store.Freeing(ctx), whole)
		return err
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// FileListParams are the parameters of memory.file_list.
type FileListParams struct {
	Prefix          string         `json:"prefix,omitempty" doc:"beginning of the paths"`
	Pattern         string         `json:"pattern,omitempty" doc:"* matches anything except a slash, **/ any folders, ? one character, [a-z] one of a set, {a,b} one of several; without a slash the pattern applies to the last part of the path"`
	MetadataFilter  map[string]any `json:"metadata_filter,omitempty" doc:"values that the metadata must have; a list means any of its values; an object of operators compares, such as {\"n\": {\"gte\": 5, \"lt\": 10}}; operators: eq, ne, gt, gte, lt, lte, in, not_in, contains, startswith, endswith, exists"`
	SessionID       string         `json:"session_id,omitempty" doc:"restrict to files of this session; prefix and pattern are relative to it"`
	UserID          string         `json:"user_id,omitempty" doc:"user on whose behalf the call is made; a session of another user is refused, and files in such sessions are left out"`
	IncludeArchived bool           `json:"include_archived,omitempty" doc:"include files of archived sessions"`
	Limit           int            `json:"limit,omitempty" default:"100" minimum:"1" maximum:"1000"`
	Cursor          string         `json:"cursor,omitempty" doc:"next_cursor of the previous page"`
}

// FileListResult is the result of memory.file_list.
type FileListResult struct {
	Success    bool       `json:"success"`
	Files      []FileView `json:"files" doc:"ordered by path"`
	Count      int        `json:"count"`
	NextCursor string     `json:"next_cursor" doc:"empty on the last page"`
}

// FileList is the action memory.file_list.
func (m *Memory) FileList(ctx context.Context, _ *tea.Request, p FileListParams) (*FileListResult, error) {
	q := file.Query{Prefix: p.Prefix, Archived: p.IncludeArchived, After: p.Cursor}
	if err := selectFiles(&q, p.Pattern, p.MetadataFilter); err != nil {
		return nil, err
	}
	r := &FileListResult{Success: true, Files: []FileView{}}
	err := m.within(ctx, p.SessionID, p.UserID, &q, func() error {
		found, next, err := m.folder.files.List(ctx, q, p.Limit)
		for _, f := range found {
			r.Files = append(r.Files, fileView(f))
		}
		r.Count, r.NextCursor = len(found), next
		return err
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// selectFiles checks the selection of a query of files and adds it to the query.
func selectFiles(q *file.Query, pattern string, metadata map[string]any) (err error) {
	if q.Prefix != "" {
		if _, err := confine.Clean(q.Prefix); err != nil {
			return err
		}
	}
	if pattern != "" {
		if q.Pattern, err = file.Compile(pattern); err != nil {
			return err
		}
	}
	q.Metadata, err = filter.Parse("metadata_filter", metadata)
	return err
}

// within restricts the query to the given session or, without one, to the files
// that the given user can see, and runs fn. It first archives expired sessions,
// which hides their files.
func (m *Memory) within(ctx context.Context, sessionID, userID string, q *file.Query, fn func() error) error {
	if err := m.checkOwner(ctx, sessionID, userID); err != nil {
		return err
	}
	if sessionID == "" {
		if userID != "" {
			q.Visible = m.visibleTo(ctx, userID)
		}
		if _, err := m.folder.sessions.Sweep(ctx); err != nil {
			return err
		}
		return fn()
	}
	return m.folder.sessions.Read(ctx, sessionID, func(prefix string) error {
		q.Within = prefix
		return fn()
	})
}

// visibleTo returns a function for one query that reports whether a file is
// outside of the sessions of other users.
func (m *Memory) visibleTo(ctx context.Context, userID string) func(path string) (bool, error) {
	sessions := map[string]bool{}
	return func(path string) (bool, error) {
		at, err := place.Of(path, "")
		if err != nil || at.Session == "" {
			return err == nil, err
		}
		visible, known := sessions[at.Session]
		if !known {
			err := m.checkOwner(ctx, at.Session, userID)
			if err != nil && !refused(err) {
				return false, err
			}
			visible = err == nil
			sessions[at.Session] = visible
		}
		return visible, nil
	}
}

// refused reports whether a session belongs to another user, no longer exists or
// is damaged.
func refused(err error) bool {
	kind := tea.AsError(err).Type
	return kind == tea.PermissionDenied || kind == tea.NotFound || errors.Is(err, store.ErrNotFound) || errors.Is(err, session.ErrDamaged)
}
