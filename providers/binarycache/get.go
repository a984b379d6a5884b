package binarycache

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
)

// notFound returns the error for a path that is absent or that the caller may not read. The error
// is the same in both cases, so that callers do not learn which paths exist.
func (c *call) notFound(hash string) error {
	switch {
	case c.access == document.AccessWrite:
		return missing{fmt.Errorf("path %s: not here, not whole, or not signed by one of trust.signingKeys", hash)}
	case c.caller.Kind() == spiffe.KindNode:
		return missing{fmt.Errorf("path %s: no closure that the documents of %s name needs it, or it was not copied here yet: florctl publish --closure names one", hash, c.caller.Short())}
	}
	return missing{fmt.Errorf("path %s: no closure that a host's documents name needs it, or it was not copied here yet: florctl publish --closure names one", hash)}
}

func (c *call) getInfo() error {
	hash, ok := strings.CutSuffix(c.r.PathValue("info"), infoExt)
	if !ok || !hashPattern.MatchString(hash) {
		return c.nothing()
	}
	p, err := c.readable(hash)
	if err != nil {
		return err
	}
	if p == nil {
		return c.notFound(hash)
	}
	b, err := os.ReadFile(c.infoFile(hash))
	if errors.Is(err, fs.ErrNotExist) {
		return c.notFound(hash) // the path was removed meanwhile
	}
	if err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", "text/x-nix-narinfo")
	_, _ = c.w.Write(b)
	return nil
}

// getContents sends the contents of a path, or only the range of bytes that the client requests.
func (c *call) getContents() error {
	hash, file := c.r.PathValue("hash"), c.r.PathValue("file")
	if !hashPattern.MatchString(hash) || !contentsPattern.MatchString(file) {
		return c.nothing()
	}
	p, err := c.readable(hash)
	if err != nil {
		return err
	}
	if p == nil || p.file != file {
		return c.notFound(hash)
	}
	return c.send(file)
}

// findContents reports to nix copy whether contents are present. nix copy then does not send them
// again.
func (c *call) findContents() error {
	file := c.r.PathValue("file")
	if !contentsPattern.MatchString(file) {
		return c.nothing()
	}
	c.mu.Lock()
	here := c.keep(filepath.Join(c.nars(), file))
	c.mu.Unlock()
	if !here {
		return missing{fmt.Errorf("contents %s: not here", file)}
	}
	return c.send(file)
}

func (c *call) send(file string) error {
	f, err := os.Open(filepath.Join(c.nars(), file))
	if errors.Is(err, fs.ErrNotExist) {
		return missing{fmt.Errorf("contents %s: not here any more", file)}
	}
	if err != nil {
		return err
	}
	defer f.Close()
	c.w.Header().Set("Content-Type", "application/x-nix-nar")
	c.w.Header().Set("ETag", `"`+file+`"`)
	http.ServeContent(c.w, c.r, "", time.Time{}, f)
	return nil
}
