package bundles

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	tea "github.com/the-edge-agent/tea/sdk"
)

// Suffix is the suffix of bundle files, SignatureSuffix of their signatures.
const (
	Suffix          = ".teab"
	SignatureSuffix = ".minisig"
)

// Limits of a bundle's contents, which are not trusted.
const (
	maxIndex     = 8 << 20
	maxFileSize  = 1 << 30
	maxFiles     = 4096
	maxPlatforms = 64
	// maxRatio bounds the expansion of a compressed file larger than 1 MiB.
	// Binaries compress to about a third.
	maxRatio = 200
)

// AnyPlatform is the platform of a plugin that runs everywhere, such as a
// script.
const AnyPlatform = "any"

// Directories and files of an installed bundle that a plugin's own files must
// not use.
const (
	documentsDir = "documents"
	indexName    = "bundle.json"
	recordName   = "record.json"
)

// binaryPrefix is the prefix of the name of a plugin's binary.
const binaryPrefix = "tea-plugin-"

// binaryName returns the name of a plugin's binary on a platform.
func binaryName(plugin, platform string) string {
	return binaryPrefix + plugin + binarySuffix(platform)
}

// binarySuffix returns the suffix of program names on a platform.
func binarySuffix(platform string) string {
	if strings.HasPrefix(platform, "windows/") {
		return ".exe"
	}
	return ""
}

// Index describes the contents of a bundle.
type Index struct {
	// Format is the version of the format, 1.
	Format   int          `json:"format"`
	Manifest tea.Manifest `json:"manifest"`
	// Platforms has the files of each platform ("linux/arm64", or AnyPlatform),
	// the binary first. Their paths are relative to the binary's directory.
	Platforms map[string][]File `json:"platforms"`
	// Documents are the licence, the bills of materials and the documentation.
	Documents []File `json:"documents,omitempty"`
}

// File is a file of a bundle.
type File struct {
	Path       string `json:"path"`
	SHA256     string `json:"sha256"`
	Size       int64  `json:"size"`
	Executable bool   `json:"executable,omitempty"`
}

// format is the version of the format that this package writes.
const format = 1

// parseIndex decodes and checks the index of a bundle.
func parseIndex(data []byte) (*Index, error) {
	var head struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("read %s: %w", indexName, err)
	}
	if head.Format != format {
		return nil, fmt.Errorf("the bundle has format %d; this tea reads format %d", head.Format, format)
	}
	ix := new(Index)
	if err := json.Unmarshal(data, ix); err != nil {
		return nil, fmt.Errorf("read %s: %w", indexName, err)
	}
	return ix, ix.check()
}

// Part is the part of an index that a start needs: the files of one platform and
// the encoded manifest. Reading it is cheaper than [parseIndex].
type Part struct {
	Manifest json.RawMessage
	Files    []File
}

// parsePart decodes a part of an index that was checked before.
func parsePart(data []byte, platform string) (Part, error) {
	var ix struct {
		Manifest  json.RawMessage   `json:"manifest"`
		Platforms map[string][]File `json:"platforms"`
	}
	if err := json.Unmarshal(data, &ix); err != nil {
		return Part{}, fmt.Errorf("read %s: %w", indexName, err)
	}
	if len(ix.Platforms[platform]) == 0 {
		return Part{}, fmt.Errorf("%s has no files for %s", indexName, platform)
	}
	return Part{ix.Manifest, ix.Platforms[platform]}, nil
}

// check reports mistakes in an index, which can be hostile.
func (ix *Index) check() error {
	if err := ix.Manifest.Check(); err != nil {
		return err
	}
	if version := "v" + ix.Manifest.Version; semver.Canonical(version)+semver.Build(version) != version { // 1.2 is short for 1.2.0
		return fmt.Errorf("bundle %s: version %q: expected a semantic version, such as 1.2.3", ix.Manifest.Name, ix.Manifest.Version)
	}
	if len(ix.Platforms) == 0 || len(ix.Platforms) > maxPlatforms {
		return fmt.Errorf("the bundle has %d platforms; expected 1 to %d", len(ix.Platforms), maxPlatforms)
	}
	total := 0
	for _, platform := range ix.List() {
		files := ix.Platforms[platform]
		if !validPlatform(platform) {
			return fmt.Errorf("platform %q: expected os/arch, such as linux/arm64, or %q", platform, AnyPlatform)
		}
		binary := binaryName(ix.Manifest.Name, platform)
		if len(files) == 0 || files[0].Path != binary || !files[0].Executable {
			return fmt.Errorf("platform %s: the first file must be the executable %s", platform, binary)
		}
		var declared []string
		for _, f := range files[1:] {
			declared = append(declared, f.Path)
		}
		for _, name := range ix.Manifest.Files {
			if !slices.Contains(declared, name) {
				return fmt.Errorf("platform %s: the file %q of the manifest is missing", platform, name)
			}
		}
		if err := checkFiles(files, binary); err != nil {
			return fmt.Errorf("platform %s: %w", platform, err)
		}
		total += len(files)
	}
	if err := checkFiles(ix.Documents, ""); err != nil {
		return fmt.Errorf("documents: %w", err)
	}
	if total+len(ix.Documents) > maxFiles {
		return fmt.Errorf("the bundle has more than %d files", maxFiles)
	}
	return nil
}

// checkFiles checks the files of one directory of an installed bundle.
func checkFiles(files []File, binary string) error {
	seen := map[string]bool{binary + ".json": binary != ""}
	for _, f := range files {
		if err := checkPath(f.Path); err != nil {
			return err
		}
		first, _, _ := strings.Cut(f.Path, "/")
		switch {
		case seen[strings.ToLower(f.Path)]:
			return fmt.Errorf("file %q appears twice", f.Path)
		case binary != "" && slices.Contains([]string{documentsDir, indexName, recordName}, strings.ToLower(first)):
			return fmt.Errorf("file %q: the name %s is reserved", f.Path, first)
		case len(f.SHA256) != 64 || strings.Trim(f.SHA256, "0123456789abcdef") != "":
			return fmt.Errorf("file %q: %q is not a SHA-256", f.Path, f.SHA256)
		case f.Size < 0 || f.Size > maxFileSize:
			return fmt.Errorf("file %q: the size %d is not between 0 and %d", f.Path, f.Size, maxFileSize)
		}
		seen[strings.ToLower(f.Path)] = true
	}
	for _, f := range files { // a file cannot be a directory too
		for dir := path.Dir(f.Path); dir != "."; dir = path.Dir(dir) {
			if seen[strings.ToLower(dir)] {
				return fmt.Errorf("%q is a file and a directory", dir)
			}
		}
	}
	return nil
}

// checkPath refuses paths that lead out of a directory or that some file systems
// cannot represent.
func checkPath(name string) error {
	odd := func(r rune) bool { return r < ' ' || r == 0x7f || r > 0x7e || strings.ContainsRune(`\:*?"<>|`, r) }
	if name == "." || !fs.ValidPath(name) || strings.ContainsFunc(name, odd) || len(name) > 200 {
		return fmt.Errorf("%q is not a valid path: expected a relative path of printable ASCII characters without the elements . and .. in it", name)
	}
	return nil
}

func validPlatform(p string) bool {
	system, arch, ok := strings.Cut(p, "/")
	word := func(s string) bool { return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789") == "" }
	return p == AnyPlatform || ok && word(system) && word(arch)
}

// List returns the platforms, sorted.
func (ix *Index) List() []string { return slices.Sorted(maps.Keys(ix.Platforms)) }

// For returns the platform whose files run on the named one.
func (ix *Index) For(platform string) (string, error) {
	for _, p := range []string{platform, AnyPlatform} {
		if _, ok := ix.Platforms[p]; ok {
			return p, nil
		}
	}
	return "", &PlatformError{Name: ix.Manifest.Name, Want: platform, Have: ix.List()}
}

// PlatformError is the error of a bundle without a binary for a platform.
type PlatformError struct {
	Name, Want string
	Have       []string
}

func (e *PlatformError) Error() string {
	return fmt.Sprintf("the bundle of %s has no binary for %s; it has %s", e.Name, e.Want, strings.Join(e.Have, ", "))
}

// blobs returns the distinct contents in the order of the archive.
func (ix *Index) blobs() ([]File, error) {
	sizes := map[string]int64{}
	var all []File
	add := func(files []File) error {
		for _, f := range files {
			size, ok := sizes[f.SHA256]
			if ok && size != f.Size {
				return errors.New("two files with one digest have different sizes")
			}
			if !ok {
				sizes[f.SHA256] = f.Size
				all = append(all, f)
			}
		}
		return nil
	}
	for _, p := range ix.List() {
		if err := add(ix.Platforms[p]); err != nil {
			return nil, err
		}
	}
	return all, add(ix.Documents)
}
