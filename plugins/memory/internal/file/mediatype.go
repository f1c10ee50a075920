package file

import (
	"net/http"
	"path"
	"strings"
)

const (
	typeJSON      = "application/json"
	typeJSONLines = "application/x-ndjson"
)

// mediaTypes are those of texts that an agent writes. The machine's own table
// is not asked: the same file has the same type everywhere.
func mediaTypes() map[string]string {
	return map[string]string{
		".json": typeJSON, ".jsonl": typeJSONLines, ".ndjson": typeJSONLines, ".yaml": "application/yaml", ".yml": "application/yaml", ".toml": "application/toml", ".xml": "application/xml",
		".md": "text/markdown", ".markdown": "text/markdown", ".txt": "text/plain", ".log": "text/plain", ".csv": "text/csv", ".tsv": "text/tab-separated-values",
		".html": "text/html", ".htm": "text/html", ".css": "text/css", ".js": "text/javascript", ".mjs": "text/javascript", ".ts": "text/x-typescript", ".go": "text/x-go",
		".py": "text/x-python", ".lua": "text/x-lua", ".sh": "text/x-shellscript", ".sql": "application/sql", ".svg": "image/svg+xml",
		".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp", ".pdf": "application/pdf", ".zip": "application/zip",
		".gz": "application/gzip", ".wasm": "application/wasm", ".parquet": "application/vnd.apache.parquet", ".wav": "audio/wav", ".mp3": "audio/mpeg", ".mp4": "video/mp4",
	}
}

// typeOf is a file's media type: by the name, else by the content.
func typeOf(name string, data []byte) string {
	if known := mediaTypes()[strings.ToLower(path.Ext(name))]; known != "" {
		return known
	}
	sniffed, _, _ := strings.Cut(http.DetectContentType(data), ";")
	return sniffed
}
