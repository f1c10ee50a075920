package local

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/the-edge-agent/tea/sdk/x/atomicfile"
)

const (
	// cacheSuffix is the suffix of the cache's files; other files in its directory are
	// left alone.
	cacheSuffix = ".page"
	// cacheShare is the divisor for the part of the cache that one page can take.
	cacheShare = 8
	// sweepShare is the divisor for the part of the cache that is written between sweeps.
	sweepShare = 16
)

// cache keeps pages on disk, so that servers can confirm that they are unchanged.
// Processes can share its directory. It is safe for concurrent use. Failures to read
// or write a file count as cache misses.
type cache struct {
	dir string
	max int64

	mu      sync.Mutex
	pending int64 // bytes written since the last sweep
}

// cachedPage is the header of a file; the body follows.
type cachedPage struct {
	URL          string `json:"url"`
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"last_modified,omitempty"`
	ContentType  string `json:"content_type,omitempty"`
	Robots       string `json:"robots,omitempty"`
	Sum          string `json:"sum"`
	body         []byte
}

// newCache returns the cache in a directory; nil if it is off. Its methods accept
// a nil receiver.
func newCache(dir string, maxBytes int64) *cache {
	if maxBytes == 0 {
		return nil
	}
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return nil
		}
		dir = filepath.Join(user, "tea", "web")
	}
	return &cache{dir: dir, max: maxBytes, pending: maxBytes} // the first write sweeps
}

func (c *cache) file(url string) string {
	sum := sha256.Sum256([]byte(url))
	return filepath.Join(c.dir, hex.EncodeToString(sum[:16])+cacheSuffix)
}

// get returns the page of an address; nil if it is not cached.
func (c *cache) get(url string) *cachedPage {
	if c == nil {
		return nil
	}
	f, err := os.Open(c.file(url))
	if err != nil {
		return nil
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() > c.max {
		return nil
	}
	r := bufio.NewReader(f)
	head, err := r.ReadBytes('\n')
	if err != nil {
		return nil
	}
	page := new(cachedPage)
	if json.Unmarshal(head, page) != nil || page.URL != url {
		return nil
	}
	if page.body, err = io.ReadAll(r); err != nil || page.Sum != sum(page.body) {
		return nil
	}
	return page
}

// put stores a response that the server can confirm later.
func (c *cache) put(url string, header http.Header, body []byte) {
	if c == nil || int64(len(body)) > c.max/cacheShare {
		return
	}
	page := cachedPage{
		URL: url, ETag: header.Get("ETag"), LastModified: header.Get("Last-Modified"),
		ContentType: header.Get("Content-Type"), Robots: strings.Join(header.Values("X-Robots-Tag"), ","), Sum: sum(body),
	}
	if page.ETag == "" && page.LastModified == "" || strings.Contains(strings.ToLower(header.Get("Cache-Control")), "no-store") {
		return
	}
	head, err := json.Marshal(page)
	if err != nil || os.MkdirAll(c.dir, 0o700) != nil {
		return
	}
	err = atomicfile.Write(c.file(url), 0o600, func(w io.Writer) error {
		_, err := io.Copy(w, io.MultiReader(bytes.NewReader(head), strings.NewReader("\n"), bytes.NewReader(body)))
		return err
	})
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending += int64(len(head) + len(body)); c.pending > c.max/sweepShare {
		c.pending = 0
		c.sweep()
	}
}

// touch marks a page as used.
func (c *cache) touch(url string) {
	now := time.Now()
	_ = os.Chtimes(c.file(url), now, now) // on failure it is removed earlier
}

// sweep removes the least recently used pages.
func (c *cache) sweep() {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return
	}
	var files []os.FileInfo
	var total int64
	for _, entry := range entries {
		info, err := entry.Info()
		switch {
		case err != nil || !info.Mode().IsRegular():
		case strings.HasSuffix(info.Name(), cacheSuffix):
			files = append(files, info)
			total += info.Size()
		case atomicfile.IsTemporary(info.Name()) && time.Since(info.ModTime()) > time.Hour:
			_ = os.Remove(filepath.Join(c.dir, info.Name())) // left by a crash; the next sweep retries
		}
	}
	sort.Slice(files, func(i, j int) bool { return files[i].ModTime().Before(files[j].ModTime()) })
	// Leave room for the writes before the next sweep.
	for _, info := range files {
		if total <= c.max-c.max/sweepShare {
			break
		}
		if os.Remove(filepath.Join(c.dir, info.Name())) == nil {
			total -= info.Size()
		}
	}
}

func sum(body []byte) string {
	s := sha256.Sum256(body)
	return hex.EncodeToString(s[:])
}
