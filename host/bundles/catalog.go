package bundles

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/sdk/x/confine"
)

// Catalog lists the bundles of a directory. As JSON it is an index file, which
// a server can offer next to the bundles.
type Catalog struct {
	Bundles []Offer `json:"bundles"`
	// Damaged are the errors of the bundles in the directory that cannot be read.
	Damaged []error `json:"-"`
}

// Offer is a bundle in a catalog.
type Offer struct {
	Name      string   `json:"name"`
	Version   string   `json:"version"`
	Platforms []string `json:"platforms"`
	// File is relative to the directory.
	File   string `json:"file"`
	SHA256 string `json:"sha256"`
}

// maxCatalog bounds the size of an index file.
const maxCatalog = 16 << 20

// ReadCatalog lists the bundles in a directory, or reads an index file.
func ReadCatalog(path string) (*Catalog, error) {
	if isURL(path) {
		return nil, &SourceError{withoutQuery(path), "expected a directory or an index file; download the file first"}
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	c := &Catalog{Bundles: []Offer{}}
	if !info.IsDir() {
		data, err := confine.ReadRegular(path, maxCatalog)
		if err != nil {
			return nil, err
		}
		if len(data) > maxCatalog {
			return nil, &SourceError{path, fmt.Sprintf("an index of bundles has at most %d MiB", maxCatalog>>20)}
		}
		if err := json.Unmarshal(data, c); err != nil {
			return nil, &SourceError{path, "it is not an index of bundles: " + err.Error()}
		}
		return c, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), Suffix) || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		b, err := Open(filepath.Join(path, e.Name()))
		if err != nil {
			c.Damaged = append(c.Damaged, err)
			continue
		}
		b.Close()
		m := b.Index.Manifest
		c.Bundles = append(c.Bundles, Offer{Name: m.Name, Version: m.Version, Platforms: b.Index.List(), File: e.Name(), SHA256: b.SHA256})
	}
	return c, nil
}

// newest returns the newest version of each plugin for this platform, sorted by
// name.
func (c *Catalog) newest() []Offer {
	best := map[string]Offer{}
	for _, o := range c.Bundles {
		if !slices.Contains(o.Platforms, Platform) && !slices.Contains(o.Platforms, AnyPlatform) {
			continue
		}
		if have, ok := best[o.Name]; !ok || newer(o.Version, have.Version) {
			best[o.Name] = o
		}
	}
	var all []Offer
	for _, name := range slices.Sorted(maps.Keys(best)) {
		all = append(all, best[name])
	}
	return all
}

// Update is a newer version of an installed plugin.
type Update struct {
	Name      string `json:"name"`
	Installed string `json:"installed"`
	Newest    string `json:"newest"`
	File      string `json:"file"`
}

// Outdated returns the installed plugins for which the catalog has a newer
// version.
func (c *Catalog) Outdated(installed []Installed) []Update {
	updates := []Update{}
	for _, offer := range c.newest() {
		i := slices.IndexFunc(installed, func(in Installed) bool { return in.Name == offer.Name && in.Active >= 0 })
		if i < 0 {
			continue
		}
		active := installed[i].Versions[installed[i].Active]
		if newer(offer.Version, active.Version) {
			updates = append(updates, Update{Name: offer.Name, Installed: active.Version, Newest: offer.Version, File: offer.File})
		}
	}
	return updates
}
