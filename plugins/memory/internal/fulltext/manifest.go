package fulltext

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/the-edge-agent/tea/sdk/x/words"
)

const (
	manifestName    = "manifest"
	manifestVersion = 5
	oldestManifest  = 3 // all its segments have format 0, and those below 5 the stems of Snowball 2
)

// manifest lists the segments that make up the index. Its file is a line with
// the format of all files and a checksum, then JSON.
type manifest struct {
	// Analysis and Language identify the analysis of words. An index with a
	// different one is discarded.
	Analysis string `json:"analysis"`
	Language string `json:"language"`
	// Watermark is the number of the last change in the segments.
	Watermark int64             `json:"watermark"`
	Mark      int64             `json:"mark,omitempty"`
	Segments  []manifestSegment `json:"segments"`
}

// manifestSegment is a segment and its dead documents.
type manifestSegment struct {
	Name   string `json:"name"`
	Format int    `json:"format,omitempty"`
	Stems  string `json:"stems,omitempty"` // the version of Snowball whose stems the dictionary has
	Tail   int64  `json:"tail"`
	Sum    uint32 `json:"sum"`
	Dead   bitmap `json:"dead,omitempty"`
}

func segmentNumber(name string) (n uint64, ok bool) {
	digits, ok := strings.CutSuffix(name, ".seg")
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, ok && err == nil
}

func (m *manifest) write(d disk) error {
	body, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode the manifest: %w", err)
	}
	return writeFile(d, manifestName, func(w io.Writer) error {
		_, err := w.Write(append([]byte(manifestHead(manifestVersion, body)), body...))
		return err
	})
}

func manifestHead(version int, body []byte) string {
	return fmt.Sprintf("tea-fulltext %d %08x\n", version, checksum(body))
}

func readManifest(d disk, lang *words.Language) (*manifest, error) {
	file, size, err := d.open(manifestName)
	if err != nil {
		return nil, fmt.Errorf("open the manifest: %w", err)
	}
	defer file.Close()
	data := make([]byte, size)
	if _, err := file.ReadAt(data, 0); err != nil && size > 0 {
		return nil, readError(err)
	}
	return parseManifest(data, lang)
}

func parseManifest(data []byte, lang *words.Language) (*manifest, error) {
	head, body, _ := bytes.Cut(data, []byte("\n"))
	var version int
	if n, err := fmt.Sscanf(string(head), "tea-fulltext %d ", &version); n == 0 {
		return nil, corrupt("the manifest does not begin like one: %v", err)
	}
	if version < oldestManifest || version > manifestVersion {
		return nil, corrupt("the manifest has format %d, this program reads %d", version, manifestVersion)
	}
	if string(head)+"\n" != manifestHead(version, body) {
		return nil, corrupt("the manifest's checksum does not match")
	}
	m := new(manifest)
	if err := json.Unmarshal(body, m); err != nil {
		return nil, corrupt("decode the manifest: %v", err)
	}
	if m.Language != lang.Name {
		return nil, fmt.Errorf("the index is for the language %q, not %q", m.Language, lang.Name)
	}
	if m.Analysis != words.Analysis() {
		return nil, fmt.Errorf("the index splits words with %q, this program with %q", m.Analysis, words.Analysis())
	}
	return m, nil
}
