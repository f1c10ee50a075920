package lsp

// The structures of LSP that the server uses, with the fields that it uses.

type position struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

type span struct {
	Start position `json:"start"`
	End   position `json:"end"`
}

type textDocument struct {
	URI        string `json:"uri"`
	LanguageID string `json:"languageId"`
	Version    int    `json:"version"`
	Text       string `json:"text"`
}

type documentParams struct {
	TextDocument textDocument `json:"textDocument"`
}

type changeParams struct {
	TextDocument textDocument `json:"textDocument"`
	Changes      []change     `json:"contentChanges"`
}

// change replaces a range, or the whole text.
type change struct {
	Range *span  `json:"range"`
	Text  string `json:"text"`
}

// diagnostic is a finding about a document.
type diagnostic struct {
	Range           span              `json:"range"`
	Severity        int               `json:"severity"`
	Code            string            `json:"code"`
	CodeDescription map[string]string `json:"codeDescription,omitempty"`
	Source          string            `json:"source"`
	Message         string            `json:"message"`
}

type publishParams struct {
	URI         string       `json:"uri"`
	Version     *int         `json:"version,omitempty"`
	Diagnostics []diagnostic `json:"diagnostics"`
}

type positionParams struct {
	TextDocument textDocument `json:"textDocument"`
	Position     position     `json:"position"`
}

type location struct {
	URI   string `json:"uri"`
	Range span   `json:"range"`
}

type textEdit struct {
	Range   span   `json:"range"`
	NewText string `json:"newText"`
}

type completionItem struct {
	Label         string   `json:"label"`
	Kind          int      `json:"kind"`
	Detail        string   `json:"detail,omitempty"`
	Documentation string   `json:"documentation,omitempty"`
	TextEdit      textEdit `json:"textEdit"`
}

// The kinds of completion items.
const (
	kindFunction = 3
	kindVariable = 6
	kindProperty = 10
	kindValue    = 12
	kindNode     = 22 // struct
)
