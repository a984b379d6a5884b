// Package file implements the kind of need that gives services files which do not belong in a
// repository, such as a password:
//
//	POST /file/request {"ref":"outline/smtp-password"}
//	→ {"content":"…","generation":"1"}
//
// The files are in a directory of the provider host that only the provider can read. Operators can
// also send files through the API of kind config. Files that operators sent are sealed in the state
// store, and take precedence. The policy determines the files of each host. The server records each
// answer, which stays the same until the generation of the need rises.
package file

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/secretfile"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/providers/announced"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// Name is the name of the kind.
const Name = "file"

// limit is the largest size of a file, in bytes. An answer with such a file is never too long.
const limit = 1 << 20

// Settings is the kind's section of the settings file.
type Settings struct {
	Dir string `json:"dir" path:"" default:"files"`

	// Control is the path of the Unix socket at which the process of kind config calls this
	// process. Config is the Unix account of that process. The defaults suit the units of a host.
	Control string `json:"control" path:""`
	Config  string `json:"config"`
}

// Kind returns the kind "file" for a provider process.
func (s *Settings) Kind(p server.Process) server.AnyKind {
	return server.Any(Files{Dir: s.Dir, Store: p.Store, Key: p.Key, Relay: announced.OperatorConfig{
		Socket:  cmp.Or(s.Control, filepath.Join("/run", p.Instance.Unit("provider-"+Name), announced.OperatorSocket)),
		Account: cmp.Or(s.Config, p.Instance.Unit("provider-config")), Policies: p.Policies, Audit: p.Audit, Logger: p.Logger,
	}})
}

// Files implements the kind "file". It gives services files from a directory of the provider host,
// and files that operators have sent to the provider.
type Files struct {
	Dir   string // directory of the files
	Store store.Store
	Key   *sealedstore.Key
	Relay announced.OperatorConfig // used by Run only
}

var (
	_ server.Kind[server.Requests[Request]] = Files{}
	_ server.Runner                         = Files{}
	_ server.Sealer                         = Files{}
)

// Name returns the name of the kind.
func (f Files) Name() string { return Name }

// Request describes a file that the policy permits a host to fetch.
type Request struct {
	Ref string `json:"ref"` // name of the file, with slashes
}

// Compile decodes which files the policy lets hosts request. It returns an error for a file name
// that is not a relative path without "..", and for any settings, because the kind has none.
func (f Files) Compile(p document.Policy) (server.Requests[Request], error) {
	if err := server.Settings(p, Name, &struct{}{}); err != nil {
		return nil, err
	}
	return server.DecodeGrants(p, Name, func(g document.Grant) (r Request, err error) {
		if err := strictjson.Decode(g.Request, &r); err != nil {
			return r, err
		}
		if !fs.ValidPath(r.Ref) || r.Ref == "." {
			return r, fmt.Errorf("ref %q: not the name of a file", r.Ref)
		}
		return r, nil
	})
}

// Answer returns the content of the file that a host requests.
func (f Files) Answer(ctx context.Context, requests server.Requests[Request], c server.Call) (server.Decision, error) {
	ref := requests.Of(c).Ref
	content, sent, err := f.sent(ctx, ref)
	if err == nil && !sent {
		content, err = f.read(ref)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return server.Decision{}, hostapi.Errorf(hostapi.CodeMissing, "file %q: not on this provider yet: send it with florctl secret set %[1]s, or put it in %s", ref, f.Dir)
	}
	if err != nil {
		return server.Decision{}, err
	}
	generation := strconv.Itoa(c.Request.Generation)
	return server.Decision{
		Answer: hostapi.Answer{Values: map[string]string{"content": content, "generation": generation}},
		Detail: map[string]string{"ref": ref, "generation": generation},
	}, nil
}

// read returns the content of a file below the directory. It refuses symbolic and hard links to
// files outside the directory, and files that could block a reader, such as a FIFO.
func (f Files) read(ref string) (string, error) {
	root, err := os.OpenRoot(f.Dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	file, err := root.OpenFile(ref, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	// Package os does not export the error of a path that leaves the root.
	if err != nil && strings.Contains(err.Error(), "path escapes") {
		return "", fmt.Errorf("file %q: a symbolic link that is absolute or leads out of %s, want a regular file: put a copy there, or have agenix or sops-nix write it there, without a link", ref, f.Dir)
	}
	if err != nil {
		return "", err
	}
	defer file.Close()
	st, err := file.Stat()
	switch {
	case err != nil:
		return "", err
	case !st.Mode().IsRegular():
		return "", fmt.Errorf("file %q: %s, want a regular file: put a copy there", ref, st.Mode().Type())
	case st.Sys().(*syscall.Stat_t).Nlink != 1:
		return "", fmt.Errorf("file %q: has another hard link, which may be outside %s, want a single link: put a copy there", ref, f.Dir)
	case st.Size() > limit:
		return "", fmt.Errorf("file %q: %d bytes, want at most %d", ref, st.Size(), limit)
	}
	if err := secretfile.Check(file); err != nil {
		return "", err
	}
	b, err := io.ReadAll(io.LimitReader(file, limit+1))
	switch {
	case err != nil:
		return "", err
	case len(b) > limit:
		return "", fmt.Errorf("file %q: grew beyond %d bytes while it was read", ref, limit)
	case !utf8.Valid(b):
		// JSON cannot carry bytes that are not UTF-8 unchanged.
		return "", fmt.Errorf("file %q: not text (UTF-8): keep it there in base64, and decode it where it is used", ref)
	}
	return string(b), nil
}
