package bundles

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/confine"
)

// Contents are the contents of a bundle for [Pack].
type Contents struct {
	Manifest tea.Manifest
	// Binaries are the plugin's binaries, one for each platform. The files that
	// the manifest lists are next to each of them.
	Binaries []string
	// License, SBOM and Docs are files; empty means none. Without SBOM, Write
	// makes bills of materials from the build information of Go binaries.
	License string
	SBOM    string
	Docs    []string
}

// Pack writes a bundle. The same contents produce the same bytes: this
// machine's file names, times and owners are left out.
func Pack(w io.Writer, c Contents) (*Index, error) {
	p := packer{data: map[string]func() ([]byte, error){}, index: &Index{
		Format: format, Manifest: c.Manifest, Platforms: map[string][]File{},
	}}
	var boms []document
	for _, binary := range c.Binaries {
		platform, err := p.addBinary(binary)
		if err != nil {
			return nil, err
		}
		if c.SBOM != "" {
			continue
		}
		bom, err := Materials(binary, binaryPrefix+c.Manifest.Name, c.Manifest.Version)
		if err != nil {
			return nil, fmt.Errorf("make the bill of materials of %s: %w", binary, err)
		}
		if bom != nil {
			boms = append(boms, document{path.Join("sbom", fileName(platform)+".cdx.json"), bom})
		}
	}
	if err := p.addDocuments(c, boms); err != nil {
		return nil, err
	}
	if err := p.index.check(); err != nil {
		return nil, err
	}
	return p.index, p.write(w)
}

type document struct {
	path string
	data []byte
}

// packer collects the contents of a bundle.
type packer struct {
	index *Index
	data  map[string]func() ([]byte, error) // by digest
}

// addBinary adds the files of one platform, and returns the platform.
func (p *packer) addBinary(binary string) (string, error) {
	platform, err := PlatformOf(binary)
	if err != nil {
		return "", err
	}
	if _, ok := p.index.Platforms[platform]; ok {
		return "", fmt.Errorf("%s: another binary is for %s, too", binary, platform)
	}
	m := p.index.Manifest
	f, err := p.addFile(binary, binaryName(m.Name, platform))
	if err != nil {
		return "", err
	}
	f.Executable = true
	files := []File{f}
	for _, name := range m.Files {
		if err := checkPath(name); err != nil {
			return "", fmt.Errorf("the manifest of %s lists a file that cannot be packed: %w", m.Name, err)
		}
		from := filepath.Join(filepath.Dir(binary), filepath.FromSlash(name))
		if f, err = p.addFile(from, name); err != nil {
			return "", err
		}
		files = append(files, f)
	}
	sortByPath(files[1:])
	p.index.Platforms[platform] = files
	return platform, nil
}

func sortByPath(files []File) {
	sort.Slice(files, func(i, j int) bool { return files[i].Path < files[j].Path })
}

// addDocuments adds the documents, sorted by path.
func (p *packer) addDocuments(c Contents, boms []document) error {
	add := func(from, name string) error {
		if from == "" {
			return nil
		}
		f, err := p.addFile(from, name)
		p.index.Documents = append(p.index.Documents, f)
		return err
	}
	if err := add(c.License, "LICENSE"); err != nil {
		return err
	}
	if c.SBOM != "" {
		if err := checkMaterials(c.SBOM); err != nil {
			return err
		}
		if err := add(c.SBOM, path.Join("sbom", filepath.Base(c.SBOM))); err != nil {
			return err
		}
	}
	for _, doc := range c.Docs {
		if err := add(doc, path.Join("docs", filepath.Base(doc))); err != nil {
			return err
		}
	}
	for _, bom := range boms {
		p.index.Documents = append(p.index.Documents, p.add(bom.path, bom.data, func() ([]byte, error) { return bom.data, nil }))
	}
	sortByPath(p.index.Documents)
	return nil
}

// addFile adds a file under a name. The content is reread when it is written,
// because the contents of all platforms do not fit in memory.
func (p *packer) addFile(from, name string) (File, error) {
	read := func() ([]byte, error) {
		data, err := confine.ReadRegular(from, maxFileSize)
		if err == nil && len(data) > maxFileSize {
			err = fmt.Errorf("%s is larger than %d bytes", from, maxFileSize)
		}
		return data, err
	}
	data, err := read()
	if err != nil {
		return File{}, err
	}
	f := p.add(name, data, read)
	info, err := os.Stat(from)
	if err != nil {
		return File{}, err
	}
	f.Executable = info.Mode().Perm()&0o100 != 0
	return f, nil
}

func (p *packer) add(name string, data []byte, read func() ([]byte, error)) File {
	sum := sha256.Sum256(data)
	f := File{Path: name, SHA256: hex.EncodeToString(sum[:]), Size: int64(len(data))}
	p.data[f.SHA256] = read
	return f
}

func (p *packer) write(w io.Writer) error {
	text, err := json.Marshal(p.index)
	if err != nil {
		return err
	}
	if len(text) > maxIndex {
		return fmt.Errorf("the manifest is too large: %s would have %d bytes, at most %d are allowed", indexName, len(text), maxIndex)
	}
	blobs, err := p.index.blobs()
	if err != nil {
		return err
	}
	sum := sha256.New()
	archive := tar.NewWriter(io.MultiWriter(w, sum))
	if err := writeEntry(archive, indexName, text); err != nil {
		return err
	}
	for _, f := range blobs {
		data, err := p.data[f.SHA256]()
		if err != nil {
			return err
		}
		if got := sha256.Sum256(data); hex.EncodeToString(got[:]) != f.SHA256 {
			return fmt.Errorf("%s changed while it was packed", f.Path)
		}
		packed, err := compress(data)
		if err != nil {
			return err
		}
		if err := writeEntry(archive, blobName(f), packed); err != nil {
			return err
		}
	}
	if err := archive.Flush(); err != nil {
		return err
	}
	end, err := trailer(sum.Sum(nil))
	if err != nil {
		return err
	}
	_, err = w.Write(end)
	return err
}

func blobName(f File) string { return "blobs/" + f.SHA256 + ".gz" }

func compress(data []byte) ([]byte, error) {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(data); err != nil {
		return nil, err
	}
	err = z.Close()
	return out.Bytes(), err
}

func writeEntry(archive *tar.Writer, name string, data []byte) error {
	err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(data)), Mode: 0o644, Format: tar.FormatUSTAR})
	if err != nil {
		return err
	}
	_, err = archive.Write(data)
	return err
}

// trailerSize is the size of the last entry and the end of the archive.
const trailerSize = 4 * 512

// trailer returns the end of the archive. It contains only the digest of all
// preceding bytes, so that a reader can compare it as a whole.
func trailer(sum []byte) ([]byte, error) {
	var out bytes.Buffer
	archive := tar.NewWriter(&out)
	if err := writeEntry(archive, "SHA256", []byte(hex.EncodeToString(sum)+"\n")); err != nil {
		return nil, err
	}
	err := archive.Close()
	return out.Bytes(), err
}

// fileName returns a platform as part of a file name.
func fileName(platform string) string { return strings.ReplaceAll(platform, "/", "_") }
