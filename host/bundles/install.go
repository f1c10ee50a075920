package bundles

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

// Installer installs bundles into a store.
type Installer struct {
	Store *Store
	// Keys are lists of keys: a bundle needs a signature by one of each.
	Keys [][]Key
	// CacheDir is for downloads; "" means the directory for temporary files.
	CacheDir string
	// Client downloads; nil means http.DefaultClient.
	Client *http.Client
	// Check decides whether a verified and unpacked version becomes active; nil
	// activates every version.
	Check func(*Entry) error
	// Name is the name of a file in messages; "" means its path.
	Name string
}

// Change is an installed version and the version that it replaces.
type Change struct {
	Now *Entry
	// Before is nil if the plugin was not installed.
	Before *Entry
	// Unverified is the key ID of a signature that was not verified because no
	// keys are required.
	Unverified string
}

// Install installs a bundle from a file or an https URL, or from a directory
// the newest version of each plugin in it that has files for this platform. All
// bundles are verified before the first is installed. The error is a
// [BundleErrors] if some could not be installed; the others were.
func (i *Installer) Install(ctx context.Context, from string) ([]Change, error) {
	if i.Store == nil {
		return nil, errors.New("there is no home directory to install plugins in")
	}
	files, faults, clean, err := i.fetch(ctx, from)
	if err != nil {
		return nil, err
	}
	defer clean()
	var verified []source
	for _, file := range files {
		if _, err := i.file(file, false); err != nil {
			faults = append(faults, err)
			continue
		}
		verified = append(verified, file)
	}
	var changes []Change
	for _, file := range verified {
		change, err := i.file(file, true)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		changes = append(changes, change)
	}
	if len(faults) > 0 {
		return changes, BundleErrors(faults)
	}
	return changes, nil
}

// BundleErrors are the errors of the bundles that could not be installed.
type BundleErrors []error

func (e BundleErrors) Error() string { return errors.Join(e...).Error() }

// Unwrap returns the errors.
func (e BundleErrors) Unwrap() []error { return e }

// source is a bundle file with its name in messages.
type source struct{ file, name string }

// fetch returns the bundle files of a source and the errors of damaged ones.
// clean removes downloads.
func (i *Installer) fetch(ctx context.Context, from string) (files []source, damaged []error, clean func(), err error) {
	if isURL(from) {
		file, clean, err := i.download(ctx, from)
		return []source{{file, withoutQuery(from)}}, nil, clean, err
	}
	clean = func() {}
	if info, err := os.Stat(from); err != nil || !info.IsDir() {
		return []source{{from, cmp.Or(i.Name, from)}}, nil, clean, err
	}
	catalog, err := ReadCatalog(from)
	if err != nil {
		return nil, nil, nil, err
	}
	for _, offer := range catalog.newest() {
		file := filepath.Join(from, offer.File)
		files = append(files, source{file, file})
	}
	switch {
	case len(files)+len(catalog.Damaged) > 0:
		return files, catalog.Damaged, clean, nil
	case len(catalog.Bundles) == 0:
		return nil, nil, nil, &SourceError{from, "the directory has no bundles (*" + Suffix + ")"}
	}
	return nil, nil, nil, fmt.Errorf("%s has no bundle (*%s) for %s", from, Suffix, Platform)
}

// download stores the bundle of a URL. clean removes it.
func (i *Installer) download(ctx context.Context, from string) (file string, clean func(), err error) {
	if i.CacheDir != "" {
		if err := os.MkdirAll(i.CacheDir, 0o700); err != nil {
			return "", nil, err
		}
		removeOldDownloads(i.CacheDir)
	}
	dir, err := os.MkdirTemp(i.CacheDir, "download-")
	if err != nil {
		return "", nil, err
	}
	clean = func() { os.RemoveAll(dir) }
	client := i.Client
	if client == nil {
		client = http.DefaultClient
	}
	if file, err = download(ctx, client, from, dir); err != nil {
		clean()
	}
	return file, clean, err
}

// removeOldDownloads removes the downloads of killed installations.
func removeOldDownloads(dir string) {
	left, _ := filepath.Glob(filepath.Join(dir, "download-*")) // the pattern is valid
	for _, path := range left {
		if info, err := os.Lstat(path); err == nil && time.Since(info.ModTime()) > 2*downloadTimeout {
			os.RemoveAll(path)
		}
	}
}

// file verifies a bundle, and installs it if requested.
func (i *Installer) file(from source, installing bool) (Change, error) {
	b, err := Open(from.file)
	if damaged := (*DamagedError)(nil); errors.As(err, &damaged) {
		return Change{}, &DamagedError{Path: from.name, Reason: damaged.Reason}
	}
	if err != nil {
		return Change{}, err
	}
	defer b.Close()
	signed, unverified, err := from.verify(b, i.Keys)
	if err != nil {
		return Change{}, err
	}
	if _, err := b.Index.For(Platform); err != nil {
		return Change{}, err
	}
	if !installing {
		return Change{}, nil
	}
	now, before, err := i.Store.Install(b, Platform, signed, i.Check)
	if err != nil {
		return Change{}, &InstallError{from.name, err}
	}
	return Change{Now: now, Before: before, Unverified: unverified}, nil
}

// InstallError is an error of the store during an installation.
type InstallError struct {
	File string
	Err  error
}

func (e *InstallError) Error() string { return fmt.Sprintf("install %s: %v", e.File, e.Err) }

// Unwrap returns the reason.
func (e *InstallError) Unwrap() error { return e.Err }

// Verify verifies the signature next to a bundle file: it must be by one key of
// each list. Without lists Verify checks nothing and returns the key ID that the
// signature names, if any.
func Verify(b *Bundle, file string, keys [][]Key) (signed *Signed, unverified string, err error) {
	return source{file, file}.verify(b, keys)
}

func (s source) verify(b *Bundle, keys [][]Key) (signed *Signed, unverified string, err error) {
	signature, err := ReadSignature(s.file + SignatureSuffix)
	if errors.Is(err, ErrUnsigned) {
		if len(keys) == 0 {
			return nil, "", nil
		}
		return nil, "", fmt.Errorf("%s: it is not signed (there is no %s), and a signature by key %s is required", s.name, path.Base(filepath.ToSlash(s.name))+SignatureSuffix, ids(slices.Concat(keys...)))
	}
	if err != nil {
		return nil, "", err
	}
	if len(keys) == 0 {
		return nil, signature.KeyID(), nil
	}
	for _, list := range keys {
		k, ok := b.Find(signature, list)
		if !ok {
			return nil, "", fmt.Errorf("%s: the signature by key %s is not a signature of this file by key %s", s.name, signature.KeyID(), ids(list))
		}
		signed = &Signed{Signature: signature, Key: k}
	}
	return signed, "", nil
}

func ids(keys []Key) string {
	var all []string
	for _, k := range keys {
		all = append(all, k.ID())
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), " or ")
}

// newer reports whether one version of a plugin is newer than another.
func newer(a, b string) bool { return semver.Compare("v"+a, "v"+b) > 0 }
