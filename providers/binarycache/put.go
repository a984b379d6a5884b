package binarycache

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nix-community/go-nix/pkg/narinfo"
	"golang.org/x/sys/unix"

	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/announced"
	"github.com/florete/florete/providers/server"
)

// CodeUpload is the audit code of rows about paths that were added to the cache.
const CodeUpload = "upload"

// spare is the number of bytes on the file system that uploads do not use.
const spare = 1 << 30

// received copies the body of an upload, and extends the deadline of the request.
func (c *call) received(to io.Writer, size int64, within time.Duration) error {
	_, err := io.Copy(to, announced.Body(c.w, c.r, size, within))
	var refused *hostapi.Error
	if errors.As(err, &refused) {
		return refused
	}
	if err != nil {
		return hostapi.Errorf(hostapi.CodeMalformed, "%.100q: %v: want at most %d bytes, sent without delay", c.r.URL.Path, err, size)
	}
	return http.NewResponseController(c.w).SetReadDeadline(time.Time{})
}

// putContents receives the contents of a path. Readers see the contents only when they are complete
// and on disk.
func (c *call) putContents() error {
	name, size := c.r.PathValue("file"), c.r.ContentLength
	switch {
	case !contentsPattern.MatchString(name):
		return c.unknown()
	case size < 1 || size > maxContents:
		return hostapi.Errorf(hostapi.CodeMalformed, "contents %s: Content-Length %d, want 1 to %d", name, size, int64(maxContents))
	}
	room := claim{cache: c.cache}
	defer room.free()
	if err := room.fits(size); err != nil { // there is no space for the upload
		return err
	}
	f, err := os.CreateTemp(c.temp(), "nar-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	sum := sha256.New()
	if err := c.received(io.MultiWriter(&room, f, sum), size, patience); err != nil {
		return err
	}
	if !contentsFile(sum.Sum(nil), name) {
		return hostapi.Errorf(hostapi.CodeMismatchInvalid, "contents %s: received %s, want those with the hash in the name: copy them again", name, describe(sum.Sum(nil), size))
	}
	if err := f.Sync(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := os.Rename(f.Name(), filepath.Join(c.nars(), name)); err != nil {
		return err
	}
	return syncDir(c.nars())
}

// claimed is the number of bytes that an upload reserves at a time. An upload cannot reserve more
// by announcing a large size.
const claimed = 16 << 20

// claim is the disk space that an upload has reserved and not yet written.
type claim struct {
	*cache
	held int64 // share of cache.claim
	left int64 // part of held that has not arrived yet
}

// Write reserves disk space for the bytes in p. It does not store them: the caller writes them to
// disk afterwards. If too little space is available, Write returns an error.
func (c *claim) Write(p []byte) (int, error) {
	if need := int64(len(p)); need > c.left {
		c.free()
		size := max(need, claimed)
		c.mu.Lock()
		defer c.mu.Unlock()
		if err := c.fitsLocked(size); err != nil {
			return 0, err
		}
		c.cache.claim += size
		c.held, c.left = size, size
	}
	c.left -= int64(len(p))
	return len(p), nil
}

// free releases the reserved space.
func (c *claim) free() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cache.claim -= c.held
	c.held, c.left = 0, 0
}

// fits returns an error if the file system does not have room for size more bytes.
func (c *cache) fits(size int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fitsLocked(size)
}

func (c *cache) fitsLocked(size int64) error {
	var stat unix.Statfs_t
	if err := unix.Statfs(c.temp(), &stat); err != nil {
		return fmt.Errorf("%s: %w", c.temp(), err)
	}
	if left := int64(stat.Bavail)*stat.Bsize - c.claim - size; left < spare {
		return hostapi.Errorf(hostapi.CodeUnavailable, "%s: %d bytes would be left of its file system, want %d: make room there, or keep fewer versions (config.keep)", c.Dir, max(left, 0), int64(spare))
	}
	return nil
}

// putInfo adds a path whose contents are already present.
func (c *call) putInfo() error {
	hash, ok := strings.CutSuffix(c.r.PathValue("info"), infoExt)
	if !ok || !hashPattern.MatchString(hash) {
		return c.unknown()
	}
	var b strings.Builder
	if err := c.received(&b, maxInfo, time.Minute); err != nil {
		return err
	}
	i, file, err := parseInfo(hash, []byte(b.String()))
	if err != nil {
		return hostapi.Errorf(hostapi.CodeMalformed, "narinfo of %s: %v", hash, err)
	}
	if err := verify(i, c.policy.Trust.SigningKeys); err != nil {
		return hostapi.Errorf(hostapi.CodeUntrusted, "%s: %v", i.StorePath, err)
	}
	if err := c.complete(hash, i, file); err != nil {
		return err
	}
	select {
	case c.verifying <- struct{}{}:
	case <-c.r.Context().Done():
		return c.r.Context().Err()
	}
	err = verifyContents(c.r.Context(), filepath.Join(c.nars(), file), i)
	<-c.verifying
	if err != nil {
		return hostapi.Errorf(hostapi.CodeMismatchInvalid, "%s: %v: copy it again", i.StorePath, err)
	}
	c.row.Outcome, c.row.Code, c.row.Message = server.Granted, CodeUpload, "added "+i.StorePath
	c.row.Detail = map[string]string{"contents": describe(i.NarHash.Digest(), int64(i.NarSize))}
	if err := c.Audit.Write(c.r.Context(), c.row); err != nil {
		return err
	}
	return c.add(hash, i, file)
}

// complete returns an error unless the contents and all references of a narinfo are present. It
// also protects the contents from the next sweep.
func (c *cache) complete(hash string, i *narinfo.NarInfo, file string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.completeLocked(hash, i, file)
}

func (c *cache) completeLocked(hash string, i *narinfo.NarInfo, file string) error {
	const again = "copy its closure, with --option narinfo-cache-positive-ttl 0 where Nix remembers an older one here"
	if !c.keep(filepath.Join(c.nars(), file)) {
		return hostapi.Errorf(hostapi.CodeMissingInvalid, "%s: its contents %s are not here: %s", i.StorePath, file, again)
	}
	for _, r := range i.References {
		if h := hashOf(r); h != hash && !c.whole(h) {
			return hostapi.Errorf(hostapi.CodeMissingInvalid, "%s: refers to %s, which is not here, whole: %s", i.StorePath, r, again)
		}
	}
	return nil
}

// add writes the narinfo of a path. It returns an error if the contents or a reference was removed
// meanwhile.
func (c *cache) add(hash string, i *narinfo.NarInfo, file string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.completeLocked(hash, i, file); err != nil {
		return err
	}
	i.URL = "nar/" + hash + "/" + file
	defer func() {
		delete(c.known, hash)
		clear(c.closures)
	}()
	return atomicfile.Via(filepath.Join(c.temp(), hash), c.infoFile(hash), []byte(i.String()), 0o600)
}

// remove removes a file. It succeeds if the file is absent.
func remove(file string) error {
	if err := os.Remove(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
