package fulltext

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"sync"
)

const (
	manifestName     = "manifest"
	manifestVersion  = 1
	maxManifestBytes = 256 << 20
	maxSegments      = 4096
)

// manifest names the segments that count. Its file is a line with the format
// and a checksum, then JSON.
type manifest struct {
	// Analysis and Language say how words are made; an index made in another
	// way is of no use.
	Analysis string `json:"analysis"`
	Language string `json:"language"`
	// Watermark is the number of the last change that is in.
	Watermark int64 `json:"watermark"`
	// Next numbers the next segment.
	Next     uint64            `json:"next"`
	Segments []manifestSegment `json:"segments"`
}

// manifestSegment is a segment and the documents in it that count no more.
type manifestSegment struct {
	Name string `json:"name"`
	Sum  uint32 `json:"sum"`
	Dead []byte `json:"dead,omitempty"`
}

var segmentName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9]{8,20}\.seg$`) })

func (m *manifest) write(d disk) error {
	body, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode the manifest: %w", err)
	}
	head := fmt.Sprintf("tea-fulltext %d %08x\n", manifestVersion, checksum(body))
	return writeFile(d, manifestName, func(w io.Writer) error {
		if _, err := io.WriteString(w, head); err != nil {
			return err
		}
		_, err := w.Write(body)
		return err
	})
}

// readManifest reads the manifest; its error says what is wrong.
func readManifest(d disk, lang *language) (*manifest, error) {
	file, size, err := d.open(manifestName)
	if err != nil {
		return nil, fmt.Errorf("open the manifest: %w", err)
	}
	defer file.Close()
	if size > maxManifestBytes {
		return nil, corrupt("the manifest has %d bytes", size)
	}
	data := make([]byte, size)
	if _, err := file.ReadAt(data, 0); err != nil && size > 0 {
		return nil, readError(err)
	}
	return parseManifest(data, lang)
}

func parseManifest(data []byte, lang *language) (*manifest, error) {
	head, body, ok := bytes.Cut(data, []byte("\n"))
	var version int
	var sum uint32
	if n, err := fmt.Sscanf(string(head), "tea-fulltext %d %08x", &version, &sum); !ok || n == 0 {
		return nil, corrupt("the manifest does not begin like one: %v", err)
	}
	if version != manifestVersion {
		return nil, corrupt("the manifest has format %d, this program reads %d", version, manifestVersion)
	}
	if string(head) != fmt.Sprintf("tea-fulltext %d %08x", version, checksum(body)) {
		return nil, corrupt("the manifest's checksum does not match")
	}
	m := new(manifest)
	if err := json.Unmarshal(body, m); err != nil {
		return nil, corrupt("decode the manifest: %v", err)
	}
	if m.Language != lang.name {
		return nil, fmt.Errorf("the index is for the language %q, not %q", m.Language, lang.name)
	}
	if m.Analysis != analysisName() {
		return nil, fmt.Errorf("the index cuts words by %q, this program by %q", m.Analysis, analysisName())
	}
	if m.Watermark < 0 || len(m.Segments) > maxSegments {
		return nil, corrupt("the manifest has impossible numbers")
	}
	seen := map[string]bool{}
	for _, s := range m.Segments {
		if !segmentName().MatchString(s.Name) || seen[s.Name] {
			return nil, corrupt("the manifest names the segment %q", s.Name)
		}
		seen[s.Name] = true
	}
	return m, nil
}
