package compile

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strconv"
	"strings"

	"github.com/nix-community/go-nix/pkg/nar"
)

// Tree is the copy of a flake that Nix makes in its store. Every account on the machine can read
// it.
type Tree struct {
	// Revision is the git commit of the flake. It is empty if the tree has uncommitted changes or
	// is not in a repository. The envelopes of documents do not always contain the commit, because
	// Nix hides self.rev if inputs are overridden.
	Revision string
	Path     string // path of the whole repository in the store
	Locked   struct {
		Dir string // directory of the flake in it
	}
}

// ReadTree fetches the flake into the store, as Nix does.
func ReadTree(ctx context.Context, src Source) (Tree, error) {
	var t Tree
	if err := src.exists(); err != nil {
		return t, err
	}
	err := run(ctx, []string{"flake", "metadata", src.ref()}, src.Args, &t)
	return t, err
}

// These constants limit the search. Keys are short, and the search must not take longer than
// compilation.
const (
	maxKeyFile = 1 << 20
	maxKeyTree = 64 << 20
)

// Faults searches the files of the flake for mistakes that would be dangerous: private keys, and
// duplicate names in the JSON files of the cluster. It returns a fault for each. It does not search
// files above 1 MiB, nor anything after the first 64 MiB. It reads the files through Nix, because
// the Nix store can be at another place than the paths of its files say.
func (t Tree) Faults(ctx context.Context) ([]Fault, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, "nix", "--extra-experimental-features", "nix-command", "store", "dump-path", t.Path)
	cmd.Env = Environ()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	archive, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	faults, unread := fileFaults(archive, t.Locked.Dir)
	if unread != nil {
		cancel()
	}
	if err := cmd.Wait(); err != nil && stderr.Len() > 0 {
		return nil, fmt.Errorf("nix store dump-path: %w", explain(err, stderr.String()))
	}
	return faults, unread
}

// fileFaults returns the faults of the files in a directory of a NAR archive.
func fileFaults(archive io.Reader, dir string) (faults []Fault, err error) {
	r, err := nar.NewReader(archive)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	root := strings.TrimSuffix("/"+dir, "/") + "/"
	read := int64(0)
	for {
		h, err := r.Next()
		if err == io.EOF {
			return faults, nil
		}
		if err != nil {
			return nil, err
		}
		place, inside := strings.CutPrefix(h.Path, root)
		if !inside || h.Type != nar.TypeRegular || h.Size > maxKeyFile || read+h.Size > maxKeyTree {
			continue
		}
		read += h.Size
		b, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		if at := privateKey(b); at >= 0 {
			faults = append(faults, Fault{
				"FL055", "error", fmt.Sprintf("%s:%d", place, 1+bytes.Count(b[:at], []byte("\n"))), "everybody can read, in the Nix store,", "a private key (not shown)",
				"take it out of the repository and its history, keep it outside, and replace it where somebody else has seen it",
			})
		}
		if strings.HasSuffix(place, ".json") && (inFolder.MatchString(place) || topFile.MatchString(place)) {
			names, offsets := twice(b)
			for i, name := range names {
				faults = append(faults, Fault{
					"FL149", "error", fmt.Sprintf("%s:%d", place, line(b, offsets[i])), "the name is there a second time, and would count alone:", strconv.Quote(name),
					"keep one of them",
				})
			}
		}
	}
}

var (
	armored = regexp.MustCompile(`-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY( BLOCK)?-----(\s|\\[nr])+([A-Za-z-]+:[^\n]*\n\s*)*[A-Za-z0-9+/=]{40}`)
	age     = regexp.MustCompile(`AGE-SECRET-KEY-(PQ-)?1[02-9AC-HJ-NP-Z]{58}`)
	nixKey  = regexp.MustCompile(`[^\s:"']:([A-Za-z0-9+/]{86}==)`)
)

// privateKey returns the offset of the first private key in a text, or -1. It finds PEM, OpenSSH
// and PGP keys, age identities, and secret keys of Nix. A secret key of Nix, unlike a signature,
// consists of a seed and a public key.
func privateKey(b []byte) int {
	if bytes.Contains(b, []byte("PRIVATE KEY")) {
		if found := armored.FindIndex(b); found != nil {
			return found[0]
		}
	}
	if bytes.Contains(b, []byte("AGE-SECRET-KEY-")) {
		if found := age.FindIndex(b); found != nil {
			return found[0]
		}
	}
	if bytes.Contains(b, []byte("==")) {
		for _, found := range nixKey.FindAllSubmatchIndex(b, -1) {
			key, err := base64.StdEncoding.DecodeString(string(b[found[2]:found[3]]))
			if err == nil && bytes.Equal(ed25519.NewKeyFromSeed(key[:ed25519.SeedSize]), key) {
				return found[2]
			}
		}
	}
	return -1
}
